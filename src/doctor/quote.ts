import type { ModelSource } from '../domain/routing.ts';
import { hideSecrets } from './without-secrets.ts';

/** How much of a name of the upstream's is quoted, in characters. */
const maxQuotedChars = 40;

/** Quotes a name that an upstream chose, without its secrets, cut to a length; the output escapes control characters. */
export function quote(name: string, { secrets }: Pick<ModelSource, 'secrets'>): string {
  const shown = hideSecrets(name, secrets().keys);
  const characters = Array.from(shown);
  const cut = characters.length > maxQuotedChars ? `${characters.slice(0, maxQuotedChars).join('')}…` : shown;
  return `'${cut}'`;
}

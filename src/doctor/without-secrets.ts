import { originOf } from '../domain/diagnosis/call-target.ts';
import { wordsOfSecret } from '../protocol/upstream/words/sanitise.ts';
import type { ModelSource } from '../domain/routing.ts';
import type { Check, UpstreamReport } from './report.ts';

/** The shortest text that is masked, in characters: a shorter one would mask parts of words. */
const leastSecretChars = 6;

const mask = '(hidden)';

/**
 * Masks an upstream's key and header values wherever they stand in its report: an upstream chooses the names of its
 * models and finish reasons, and might quote what it was sent. A text that is cut has to be masked before, by
 * `hideSecrets`: the beginning of a secret is not recognised as one.
 */
export function withoutSecrets(report: UpstreamReport, secrets: readonly string[]): UpstreamReport {
  return {
    ...report,
    url: hideSecrets(report.url, secrets),
    checks: report.checks.map((check) => mapTexts(check, (text) => hideSecrets(text, secrets))),
  };
}

/** A check with its texts changed. */
export function mapTexts(check: Check, change: (text: string) => string): Check {
  const { detail, advice } = check;
  return { ...check, detail: change(detail), advice: advice === null ? null : change(advice) };
}

/** The longest path of a base URL that may stand in an advice for its own sake, such as `/v1`. */
const commonPathChars = 3;

/** Leaves of a base URL in a text nothing but its scheme, host and port: its path may say whose account it is. */
export function hidePath(text: string, url: URL): string {
  const path = url.pathname.replace(/\/+$/, '');
  if (path === '' || url.host === '') return text;
  const origin = originOf(url);
  const masked = text.replaceAll(origin + path, `${origin}/…`);
  return path.length > commonPathChars ? masked.replaceAll(path, '/…') : masked;
}

/**
 * Masks secrets in a text: as they are, in another case, as in a media type, and encoded, as in a path. A header's value
 * such as `Bearer KEY` is also masked without its scheme.
 */
export function hideSecrets(text: string, secrets: readonly string[]): string {
  const forms = secrets
    .flatMap(wordsOfSecret)
    .flatMap((secret) => [secret, encodeURIComponent(secret.toWellFormed())])
    .filter((secret) => secret.length >= leastSecretChars)
    // The longest first: of a secret that begins with another one, the rest would be left.
    .toSorted((a, b) => b.length - a.length);
  if (forms.length === 0) return text;
  return text.replaceAll(new RegExp(forms.map(escapeForm).join('|'), 'gi'), mask);
}

/** The pattern of a text that stands for itself. */
function escapeForm(form: string): string {
  return form.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, String.raw`\$&`);
}

/** How much of a name of the upstream's is quoted, in characters. */
const maxQuotedChars = 40;

/** Quotes a name that an upstream chose, without its secrets, cut to a length; the output escapes control characters. */
export function quote(name: string, { secrets }: Pick<ModelSource, 'secrets'>): string {
  const shown = hideSecrets(name, secrets().keys);
  const characters = Array.from(shown);
  const cut = characters.length > maxQuotedChars ? `${characters.slice(0, maxQuotedChars).join('')}…` : shown;
  return `'${cut}'`;
}

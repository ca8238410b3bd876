import type { z } from 'zod';
import type { ApiKey } from '../../domain/keys/api-key.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import type { ModelCatalogue } from '../../domain/routing.ts';
import { isRefusal, refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import { nearestName } from '../../shared/nearest-name.ts';
import { listNames } from '../checked-input.ts';
import type { changedKey } from './key-inputs.ts';

/** What decides whether a key could be used: the clock, the models on offer, and the paths that are passed on. */
export interface UseOfKeys {
  readonly clock: Pick<Clock, 'now'>;
  readonly models: ModelCatalogue;
  readonly passedPaths: readonly string[];
}

/** The settings of a key with which all of its requests may be refused. */
type Settings = Pick<z.output<typeof changedKey>, 'models' | 'expiresAt'>;

/**
 * The refusal of settings that can only be a mistake: a model that is not offered, or an end in the past. `null` for any
 * others. What `readOld` says a key has already may stay: a model may have gone since, and time has passed.
 */
export async function findUselessSetting(
  { models, expiresAt }: Settings,
  use: UseOfKeys,
  readOld: () => Promise<ApiKey | Refusal | null>,
): Promise<Refusal | null> {
  const named = models ?? [];
  const isPast = typeof expiresAt === 'number' && expiresAt <= use.clock.now();
  if (named.length === 0 && !isPast) return null;
  const old = await readOld();
  if (old !== null && isRefusal(old)) return old;
  if (isPast && expiresAt !== old?.expiresAt)
    return refuse(
      'invalid_value',
      "Invalid 'expiresAt': expected a time to come (a day begins at midnight UTC). To end a key now, revoke it.",
      { param: 'expiresAt' },
    );
  return findUnknownModel(named, old?.models ?? [], use);
}

/** Nothing is refused while the list of an upstream is not known. */
async function findUnknownModel(
  named: readonly string[],
  kept: readonly string[],
  { models, passedPaths }: UseOfKeys,
): Promise<Refusal | null> {
  for (const [index, name] of named.entries()) {
    if (kept.includes(name) || passedPaths.includes(name)) continue;
    const found = await models.find(name);
    if (isRefusal(found)) return null;
    if (found !== null) continue;
    const offered = await models.list();
    const known = [...(isRefusal(offered) ? [] : offered.map(({ id }) => id)), ...passedPaths];
    const param = `models.${index}`;
    return refuse('invalid_value', `Invalid '${param}': no model has this name${hintOf(name, known)}`, {
      param,
    });
  }
  return null;
}

/** The nearest known name of a misspelt one, or the known names. */
function hintOf(wrong: string, known: readonly string[]): string {
  if (known.length === 0) return ': none is offered.';
  const nearest = nearestName(wrong, known);
  if (nearest !== null) return `; did you mean '${nearest}'?`;
  return `; known names: ${listNames(known)}.`;
}

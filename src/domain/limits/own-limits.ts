import type { Refusal } from '../../shared/errors.ts';

/** The limit behind a refusal, by its kind; `null` for any other refusal. Limits of a provider are `upstream`. */
export function limitOf({ code, limit }: Refusal): string | null {
  if (code === 'insufficient_balance') return 'balance';
  if (code === 'balance_held') return 'held';
  if (code === 'budget_exhausted') return 'budget';
  if (code === 'budget_held') return 'budget_held';
  if (limit === null) return null;
  return limit.source === 'upstream' && limit.kind !== 'queue' ? 'upstream' : limit.kind;
}

/**
 * The limit of this gateway behind a refusal, one of a closed list: those of a group are told apart from those of a key.
 * `null` for any other refusal, also for those of a provider.
 */
export function ownLimitOf(refusal: Refusal): string | null {
  const limit = limitOf(refusal);
  if (limit === null || limit === 'upstream') return null;
  const source = refusal.limit?.source ?? refusal.budget?.source;
  return source === 'group' ? `group_${limit}` : limit;
}

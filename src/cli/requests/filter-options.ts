import { findKeyId } from '../keys/find-key.ts';

/** The options by which records are chosen, as commander names them. */
export interface FilterOptions {
  readonly key?: string;
  readonly group?: string;
  readonly model?: string;
  readonly upstream?: string;
  readonly outcome?: string;
  readonly status?: string;
  readonly cause?: string;
  readonly tag?: string;
  /** In milliseconds. */
  readonly minDuration?: number;
  readonly maxDuration?: number;
  readonly minAmount?: string;
  readonly from?: string;
  readonly to?: string;
}

/** The same as a query of the admin API. Throws for a key that is not there. */
export async function filterQuery({
  key,
  minDuration,
  maxDuration,
  minAmount,
  ...named
}: FilterOptions): Promise<string> {
  const query = new URLSearchParams({ ...named });
  if (key !== undefined) query.set('key', await findKeyId(key));
  if (minDuration !== undefined) query.set('min_duration_ms', String(minDuration));
  if (maxDuration !== undefined) query.set('max_duration_ms', String(maxDuration));
  if (minAmount !== undefined) query.set('min_amount', minAmount);
  return query.toString();
}

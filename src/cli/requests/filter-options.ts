import { parseDuration } from '../../shared/duration.ts';
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
  /** Such as `5s`. */
  readonly minDuration?: string;
  readonly maxDuration?: string;
  readonly minAmount?: string;
  readonly from?: string;
  readonly to?: string;
}

/** The same as a query of the admin API. Throws for a key that is not there, and for what is no duration. */
export async function filterQuery({
  key,
  minDuration,
  maxDuration,
  minAmount,
  ...named
}: FilterOptions): Promise<string> {
  const query = new URLSearchParams({ ...named });
  if (key !== undefined) query.set('key', await findKeyId(key));
  if (minDuration !== undefined) query.set('min_duration_ms', inMs('--min-duration', minDuration));
  if (maxDuration !== undefined) query.set('max_duration_ms', inMs('--max-duration', maxDuration));
  if (minAmount !== undefined) query.set('min_amount', minAmount);
  return query.toString();
}

function inMs(option: string, text: string): string {
  const duration = parseDuration(text);
  if (duration === null) throw new Error(`${option}: expected a duration such as 250ms, 5s or 10m`);
  return String(duration);
}

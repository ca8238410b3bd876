import { dayWindow, minuteWindow } from '../../domain/limits/token-limits.ts';
import type { TokenWindow } from '../../domain/limits/token-limits.ts';
import type { FixedUnit } from '../engine.ts';

/** The beginning of the slice that runs now. */
const sliceOf = (sliceMs: number): string => `now_ms() / ${sliceMs} * ${sliceMs}`;

const addTo = ({ lengthMs, sliceMs }: TokenWindow): string =>
  `INSERT INTO token_use (key_id, length_ms, slice_at, tokens)
   VALUES (:key_id, ${lengthMs}, ${sliceOf(sliceMs)}, :tokens)
   ON CONFLICT (key_id, length_ms, slice_at) DO UPDATE SET tokens = token_use.tokens + excluded.tokens`;

const forgetOld = ({ lengthMs, sliceMs }: TokenWindow): string =>
  `DELETE FROM token_use WHERE key_id = :key_id AND length_ms = ${lengthMs}
   AND (slice_at <= now_ms() - ${lengthMs + sliceMs} OR slice_at > now_ms())`;

/**
 * Adds tokens to both windows of a key, and forgets its slices that count no more: a key has a limited
 * number of rows. It is a unit of its own and no part of the settlement, which has nothing to do for keys without a limit.
 */
export const addTokens: FixedUnit<'add_tokens'> = {
  name: 'add_tokens',
  takes: { key_id: 'text', tokens: 'bigint' },
  spreadBy: 'key_id',
  mayBeForgotten: true,
  locks: [],
  preparations: [],
  decisions: [`${addTo(minuteWindow)} RETURNING 1 AS added`],
  decided: { added: 'bigint' },
  changes: [addTo(dayWindow), forgetOld(minuteWindow), forgetOld(dayWindow)],
  columns: ['added'],
};

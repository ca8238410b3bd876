import { dayWindow, minuteWindow } from '../domain/limits/token-limits.ts';
import type { TokenWindow, TokenUse } from '../domain/limits/token-limits.ts';
import type { ReportFault } from '../domain/ports/telemetry.ts';
import type { Engine, FixedUnit, Statement } from './engine.ts';
import { lookUpRows } from './statements.ts';

const slicesOf = ({ lengthMs, sliceMs }: TokenWindow): string =>
  `SELECT length_ms, tokens, slice_at + ${lengthMs + sliceMs} - now_ms() AS expires_in_ms FROM token_use
   WHERE key_id = ? AND length_ms = ${lengthMs} AND slice_at > now_ms() - ${lengthMs + sliceMs} AND slice_at <= now_ms()`;

/** Written once: requests ask for it. */
const slices = `${slicesOf(minuteWindow)} UNION ALL ${slicesOf(dayWindow)}`;

/**
 * The slices of a key that have not left their windows, in the database's time. Those in the future don't count: its clock
 * was set back, and the key would be refused for as long.
 */
function selectTokenUse(keyId: string): Statement {
  return { sql: slices, values: [keyId, keyId] };
}

/** Counts the tokens of keys in the database, by its clock. `report` gets what could not be counted. */
export function createTokenUse(engine: Pick<Engine, 'call' | 'lookUp'>, report: ReportFault): TokenUse {
  return {
    async used(keyId) {
      const rows = await lookUpRows(engine, selectTokenUse(keyId));
      return rows.map((row) => ({
        lengthMs: Number(row['length_ms']),
        tokens: Number(row['tokens']),
        expiresInMs: Number(row['expires_in_ms']),
      }));
    },
    async add(keyId, tokens) {
      try {
        await engine.call(addTokens, [keyId, tokens]);
      } catch (error) {
        report('used tokens not counted for the limits of their keys', error);
      }
    },
  };
}

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

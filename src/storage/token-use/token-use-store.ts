import type { TokenUse } from '../../domain/ports/token-use.ts';
import type { ReportFault } from '../../domain/ports/telemetry.ts';
import { dayWindow, minuteWindow } from '../../domain/limits/token-limits.ts';
import type { TokenWindow } from '../../domain/limits/token-limits.ts';
import type { Engine, Statement } from '../engine.ts';
import { lookUpRows } from '../read-rows.ts';
import { addTokens } from './add-tokens.ts';

const slicesOf = ({ lengthMs, sliceMs }: TokenWindow): string =>
  `SELECT length_ms, tokens, slice_at + ${lengthMs + sliceMs} - now_ms() AS expires_in_ms FROM token_use
   WHERE key_id = ? AND length_ms = ${lengthMs} AND slice_at > now_ms() - ${lengthMs + sliceMs} AND slice_at <= now_ms()`;

/**
 * The slices of a key that have not left their windows, in the database's time. Those in the future don't count: its clock
 * was set back, and the key would be refused for as long.
 */
function selectTokenUse(keyId: string): Statement {
  return { sql: `${slicesOf(minuteWindow)} UNION ALL ${slicesOf(dayWindow)}`, values: [keyId, keyId] };
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

import type { FixedUnitName } from '../engine.ts';
import { fixedUnits } from '../fixed-units.ts';
import { settlementUnits } from '../records/settle-record.ts';
import { functionOf } from './database-function.ts';
import type { Beside, DatabaseFunction } from './database-function.ts';

/**
 * Frees the slot of a request with its settlement, so that its client waits for one call at its end. `freed` is NULL where
 * others wait for a slot, whom its node serves, and where another session has locked the row of the key or of the slot: it must
 * not hold up money. Then its node gives the slot back, as it does where a settlement is made later.
 */
const freeing: Beside = {
  declares: ['freed BIGINT'],
  last: {
    results: ['freed'],
    statements: `DELETE FROM slots USING
      (SELECT request_id FROM key_limits JOIN slots AS slot ON slot.key_id = key_limits.key_id
       WHERE key_limits.key_id = :key_id AND waiting = 0
         AND request_id = 'req_' || lpad(to_hex(:created_at), 12, '0') || :tail FOR UPDATE SKIP LOCKED) AS free
    WHERE slots.request_id = free.request_id;
    IF FOUND THEN
      UPDATE key_limits SET running = running - 1 WHERE key_id = :key_id;
      freed := 1;
    END IF;`,
  },
};

/** The functions of the fixed units. */
export const unitFunctions: ReadonlyMap<FixedUnitName, DatabaseFunction> = new Map(
  Object.values(fixedUnits).map((unit) => [
    unit.name,
    functionOf(unit, unit.name in settlementUnits ? freeing : undefined),
  ]),
);

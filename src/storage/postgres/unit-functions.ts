import type { FixedUnitName } from '../engine.ts';
import { fixedUnits } from '../fixed-units.ts';
import { settlementUnits } from '../records/settle-record.ts';
import { functionOf } from './database-function.ts';
import type { DatabaseFunction, LastStep } from './database-function.ts';
import { freeSlot } from './slots/slot-functions.ts';

/**
 * Frees the slot of a request with its settlement, so that its client waits for one call at its end: `queue` says whether others
 * waited for a slot, and is NULL where it was not freed, since another session had locked its key. Then its node gives it back,
 * as it does where a settlement is made later: a lock on slots must not hold up money.
 */
const freeing: LastStep = {
  column: 'queue',
  statements: `PERFORM FROM key_limits WHERE key_id = :key_id FOR UPDATE SKIP LOCKED;
    IF FOUND THEN
      @queue := CAST(${freeSlot.called}(:key_id, 'req_' || lpad(to_hex(:created_at), 12, '0') || :tail) AS INTEGER);
    END IF;`,
};

/** The functions of the fixed units. */
export const unitFunctions: ReadonlyMap<FixedUnitName, DatabaseFunction> = new Map(
  Object.values(fixedUnits).map((unit) => [
    unit.name,
    functionOf(unit, unit.name in settlementUnits ? freeing : null),
  ]),
);

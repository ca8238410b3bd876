import type { LimitDecision } from '../../../domain/limits/limits.ts';
import type { FixedUnit, FixedUnitName, ResultRow } from '../../engine.ts';
import { holdsLease } from '../../leases.ts';
import { openRecord, openingUnits } from '../../records/open-record.ts';
import { functionOf } from '../database-function.ts';
import type { Beside, DatabaseFunction } from '../database-function.ts';
import { describeDecision, grantSlot, keyVariables, lockKey, saveKey } from './key-rows.ts';
import { verdictOn } from './slot-functions.ts';

/** What a beginning says of the slot, by the number that it returns. */
const verdicts = ['granted', 'concurrency', 'rate', 'no lease'] as const;

/**
 * Takes a slot without waiting, as `takeSlot` does, once the unit has decided on the hold; without a slot the record is not
 * begun. So the account is locked before the row of the key, as by settlements: what waits for an account has no key locked.
 */
const takingSlot = (undo: string): Omit<Beside, 'name'> => ({
  takes: { request_id: 'text', concurrency: 'bigint', requests_per_minute: 'bigint' },
  declares: [...keyVariables, 'verdict TEXT'],
  first: {
    statements: `
      ${lockKey(':key_id')}
      verdict := CASE WHEN NOT ${holdsLease(':owner')} THEN 'no lease' ELSE ${verdictOn(':concurrency', ':requests_per_minute')} END;
      IF verdict = 'granted' THEN
        ${grantSlot(':request_id', ':owner')}
      END IF;
      ${saveKey}
      ${describeDecision('verdict', ':requests_per_minute')}
      IF verdict <> 'granted' THEN
        ${undo}
        RETURN ARRAY[array_position(CAST(ARRAY[${verdicts.map((one) => `'${one}'`).join(', ')}] AS TEXT[]), verdict),
          decision.in_flight, decision.remaining_starts, decision.reset_ms];
      END IF;`,
    results: ['1', 'decision.in_flight', 'decision.remaining_starts', 'decision.reset_ms'],
  },
});

/** The functions that take a slot and begin a record in one call, by the unit that begins it. */
export const beginFunctions: ReadonlyMap<FixedUnitName, DatabaseFunction> = new Map(
  [openRecord, ...Object.values(openingUnits)].map((unit: FixedUnit) => {
    const undo = unit.undo === undefined ? '' : `${unit.undo};`;
    return [unit.name, functionOf(unit, { ...takingSlot(undo), name: unit.name.replace('open', 'begin') })];
  }),
);

/** What a beginning decided. */
interface Beginning extends Omit<LimitDecision, 'verdict'> {
  readonly verdict: (typeof verdicts)[number] | undefined;
  /** The row of the unit that begins the record; empty without a slot. */
  readonly opened: NonNullable<ResultRow>;
}

/** Reads the row of a beginning. */
export function readBeginning([
  verdict,
  inFlight,
  remainingStarts,
  resetMs,
  ...opened
]: NonNullable<ResultRow>): Beginning {
  return {
    verdict: verdicts[Number(verdict) - 1],
    inFlight: Number(inFlight),
    remainingStarts: Number(remainingStarts),
    resetMs: Number(resetMs),
    opened,
  };
}

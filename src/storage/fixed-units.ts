import { beginClaim, freeClaim } from './claims.ts';
import type { FixedUnit, FixedUnitName } from './engine.ts';
import { endLease, renewLease } from './leases.ts';
import { openingUnits, openRecord } from './records/open-record.ts';
import { numberKind } from './records/record-kinds.ts';
import { settlementUnits } from './records/settle-record.ts';
import { addTokens } from './token-use.ts';

/**
 * Writes a row that is gone when the unit is committed: an UPDATE to the same value would write nothing to the disk. It does
 * not wait for units of statements: a long one of another node would make every node seem unable to write, while requests,
 * which don't wait for it either, are served.
 */
export const checkWrites: FixedUnit<'check_writes'> = {
  name: 'check_writes',
  takes: {},
  spreadBy: null,
  mayBeForgotten: false,
  locks: [],
  preparations: [],
  decisions: [
    `INSERT INTO migrations (number, name, checksum) VALUES (0, 'write check', '') RETURNING number`,
  ],
  decided: { number: 'bigint' },
  changes: ['DELETE FROM migrations WHERE number = @number'],
  columns: ['number'],
};

/** Every fixed unit by its name, for the part of an engine that prepares them. */
export const fixedUnits: { readonly [Name in FixedUnitName]: FixedUnit<Name> } = {
  number_kind: numberKind,
  open_record: openRecord,
  ...openingUnits,
  ...settlementUnits,
  begin_claim: beginClaim,
  free_claim: freeClaim,
  renew_lease: renewLease,
  end_lease: endLease,
  check_writes: checkWrites,
  add_tokens: addTokens,
};

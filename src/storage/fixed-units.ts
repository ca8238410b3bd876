import type { FixedUnit, FixedUnitName } from './engine.ts';
import { endLease, renewLease } from './leases/lease-statements.ts';
import { checkWrites } from './records/check-writes.ts';
import { openingUnits } from './records/open-budgeted-statement.ts';
import { openRecord } from './records/open-statement.ts';
import { settlementUnits } from './records/settle-statement.ts';
import { addTokens } from './token-use/add-tokens.ts';

/** Every fixed unit by its name, for the part of an engine that prepares them. */
export const fixedUnits: { readonly [Name in FixedUnitName]: FixedUnit<Name> } = {
  open_record: openRecord,
  ...openingUnits,
  ...settlementUnits,
  renew_lease: renewLease,
  end_lease: endLease,
  check_writes: checkWrites,
  add_tokens: addTokens,
};

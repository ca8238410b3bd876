import type { FixedUnit } from '../engine.ts';

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

import type { Migration } from '../../migration.ts';

/** The shares of keys among those that wait before an upstream. An earlier version has no such lines, and writes no weights. */
export const weights: Migration = {
  number: 14,
  runsWith: 6,
  name: 'weights of keys',
  statements: [`ALTER TABLE api_keys ADD COLUMN weight INTEGER`],
};

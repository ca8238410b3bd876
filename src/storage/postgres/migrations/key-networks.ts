import type { Migration } from '../../migration.ts';

/**
 * Where keys may be used. An earlier version writes keys without the column, and accepts every key from everywhere: it may
 * run beside this one while nodes are replaced, as long as it takes.
 */
export const keyNetworks: Migration = {
  number: 5,
  name: 'where keys may be used',
  statements: [`ALTER TABLE api_keys ADD COLUMN allow_from TEXT`],
  runsWith: 4,
};

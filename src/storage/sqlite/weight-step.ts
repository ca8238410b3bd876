import type { Migration } from '../migration.ts';

/** The shares of keys among those that wait before an upstream; without a value a key has the default one. */
export const weightStep: Migration = {
  number: 22,
  name: 'weights of keys',
  statements: [`ALTER TABLE api_keys ADD COLUMN weight INTEGER`],
};

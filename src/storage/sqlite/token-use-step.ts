import type { Migration } from '../migration.ts';

/** Limits of tokens, and the tokens that keys used in the slices of their windows. */
export const tokenUseStep: Migration = {
  number: 17,
  name: 'limits of tokens',
  statements: [
    `ALTER TABLE api_keys ADD COLUMN tokens_per_minute INTEGER`,
    `ALTER TABLE api_keys ADD COLUMN tokens_per_day INTEGER`,
    `CREATE TABLE token_use (
       key_id TEXT NOT NULL,
       length_ms BIGINT NOT NULL,
       slice_at BIGINT NOT NULL,
       tokens BIGINT NOT NULL,
       PRIMARY KEY (key_id, length_ms, slice_at)
     ) WITHOUT ROWID`,
  ],
};

import type { Migration } from '../../migration.ts';

/** Sums of refused requests, and why recorded ones failed: an earlier version counts none, and writes no reasons. */
export const refusals: Migration = {
  number: 15,
  runsWith: 6,
  name: 'refused requests by key and limit, and why recorded ones failed',
  statements: [
    `CREATE TABLE refusals (
       day BIGINT NOT NULL,
       key_id TEXT COLLATE "C" NOT NULL,
       limit_name TEXT COLLATE "C" NOT NULL,
       requests BIGINT NOT NULL,
       PRIMARY KEY (day, key_id, limit_name)
     ) WITH (fillfactor = 80)`,
    `ALTER TABLE records ADD COLUMN failure TEXT`,
  ],
};

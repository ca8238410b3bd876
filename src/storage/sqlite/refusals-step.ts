import type { Migration } from '../migration.ts';

/** Sums of refused requests, and why recorded ones failed. */
export const refusalsStep: Migration = {
  number: 23,
  name: 'refused requests by key and limit, and why recorded ones failed',
  statements: [
    `CREATE TABLE refusals (
       day BIGINT NOT NULL,
       key_id TEXT NOT NULL,
       limit_name TEXT NOT NULL,
       requests BIGINT NOT NULL,
       PRIMARY KEY (day, key_id, limit_name)
     ) WITHOUT ROWID`,
    `ALTER TABLE records ADD COLUMN failure TEXT`,
  ],
};

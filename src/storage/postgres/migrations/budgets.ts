import type { Migration } from '../../migration.ts';

/**
 * Budgets of keys, with the period that each is in. A version without this step lets keys spend more, and leaves holds that it
 * gives back in their budgets until the period is over: budgets are set when all nodes have this one.
 */
export const budgets: Migration = {
  number: 10,
  runsWith: 6,
  name: 'what keys may spend in a period of the calendar',
  statements: [
    `ALTER TABLE api_keys ADD COLUMN budget TEXT`,
    `CREATE TABLE budgets (
       id TEXT COLLATE "C" PRIMARY KEY,
       period_start BIGINT NOT NULL,
       period_end BIGINT NOT NULL,
       spent BIGINT NOT NULL DEFAULT 0,
       held BIGINT NOT NULL DEFAULT 0,
       level INTEGER NOT NULL DEFAULT 0
     ) WITH (fillfactor = 50)`,
    `ALTER TABLE open_requests ADD COLUMN budget TEXT COLLATE "C"`,
    `ALTER TABLE open_requests ADD COLUMN budget_period BIGINT`,
    `ALTER TABLE open_requests ADD COLUMN budget_hold BIGINT`,
    `ALTER TABLE records ADD COLUMN budget TEXT COLLATE "C"`,
    `ALTER TABLE records ADD COLUMN budget_period BIGINT`,
    `ALTER TABLE records ADD COLUMN budget_hold BIGINT`,
    // Of the records of keys without a budget it has nothing.
    `CREATE INDEX records_by_budget ON records (budget, budget_period, request_id) WHERE budget IS NOT NULL`,
  ],
};

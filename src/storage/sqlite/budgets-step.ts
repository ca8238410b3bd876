import type { Migration } from '../migration.ts';

/** Budgets of keys, with the period that each is in. */
export const budgetsStep: Migration = {
  number: 19,
  name: 'what keys may spend in a period of the calendar',
  statements: [
    `ALTER TABLE api_keys ADD COLUMN budget TEXT`,
    `CREATE TABLE budgets (
       id TEXT PRIMARY KEY,
       period_start BIGINT NOT NULL,
       period_end BIGINT NOT NULL,
       spent BIGINT NOT NULL DEFAULT 0,
       held BIGINT NOT NULL DEFAULT 0,
       level INTEGER NOT NULL DEFAULT 0
     ) WITHOUT ROWID`,
    `ALTER TABLE open_requests ADD COLUMN budget TEXT`,
    `ALTER TABLE open_requests ADD COLUMN budget_period BIGINT`,
    `ALTER TABLE open_requests ADD COLUMN budget_hold BIGINT`,
    `ALTER TABLE records ADD COLUMN budget TEXT`,
    `ALTER TABLE records ADD COLUMN budget_period BIGINT`,
    `ALTER TABLE records ADD COLUMN budget_hold BIGINT`,
    // Of the records of keys without a budget it has nothing.
    `CREATE INDEX records_by_budget ON records (budget, budget_period, request_id) WHERE budget IS NOT NULL`,
  ],
};

import type { Migration } from '../migration.ts';
import { balanceFell, budgetReached } from './event-triggers.ts';

/** Groups of keys, with their budgets, and events when a budget reaches one of its levels. */
export const groupsStep: Migration = {
  number: 21,
  name: 'groups of keys, and events of budgets',
  statements: [
    `ALTER TABLE api_keys ADD COLUMN group_name TEXT`,
    `ALTER TABLE open_requests ADD COLUMN group_budget TEXT`,
    `ALTER TABLE open_requests ADD COLUMN group_period BIGINT`,
    `ALTER TABLE records ADD COLUMN group_budget TEXT`,
    `ALTER TABLE records ADD COLUMN group_period BIGINT`,
    `CREATE INDEX records_by_group_budget ON records (group_budget, group_period, request_id)
       WHERE group_budget IS NOT NULL`,
    // The amount in force at the last charge, for the event.
    `ALTER TABLE budgets ADD COLUMN amount BIGINT`,
    // It was the number of levels that were reached, and is the highest one in thousandths: the next charge sets it.
    `UPDATE budgets SET level = 0`,
    `ALTER TABLE event_settings ADD COLUMN budget_levels INTEGER NOT NULL DEFAULT 0`,
    budgetReached('insert'),
    budgetReached('update'),
    // What is free and held together falls with charges alone: no other change of an account has to be compared.
    `DROP TRIGGER balance_fell`,
    balanceFell('spent'),
  ],
};

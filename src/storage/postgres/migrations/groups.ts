import type { Migration } from '../../migration.ts';
import { balanceFell } from './outbox.ts';

/**
 * Groups of keys, with their budgets, and events when a budget reaches one of its levels. A version without this step lets the
 * keys of a group have and spend as much as each of them may alone: groups are set when all nodes have this one.
 */
export const groups: Migration = {
  number: 12,
  runsWith: 6,
  name: 'groups of keys, and events of budgets',
  statements: [
    `ALTER TABLE api_keys ADD COLUMN group_name TEXT COLLATE "C"`,
    `ALTER TABLE open_requests ADD COLUMN group_budget TEXT COLLATE "C"`,
    `ALTER TABLE open_requests ADD COLUMN group_period BIGINT`,
    `ALTER TABLE records ADD COLUMN group_budget TEXT COLLATE "C"`,
    `ALTER TABLE records ADD COLUMN group_period BIGINT`,
    `CREATE INDEX records_by_group_budget ON records (group_budget, group_period, request_id)
       WHERE group_budget IS NOT NULL`,
    // The amount in force at the last charge, for the event.
    `ALTER TABLE budgets ADD COLUMN amount BIGINT`,
    // It was the number of levels that were reached, and is the highest one in thousandths: the next charge sets it.
    `UPDATE budgets SET level = 0`,
    `ALTER TABLE event_settings ADD COLUMN budget_levels INTEGER NOT NULL DEFAULT 0`,
    `CREATE FUNCTION note_budget_level() RETURNS trigger LANGUAGE plpgsql AS
       $$ BEGIN
         INSERT INTO outbox (id, name, type, subject, position, created_at, data)
         SELECT
           'evt_' || lpad(to_hex(now_ms()), 12, '0') || left(replace(CAST(gen_random_uuid() AS TEXT), '-', ''), 20),
           'budget.level:' || NEW.id || ':' || NEW.period_start || ':' || NEW.level, 'budget.level',
           'budget:' || NEW.id, NEW.period_start + NEW.level, now_ms(),
           CAST(json_build_object('budget', NEW.id,
             'key_name', (SELECT name FROM api_keys WHERE api_keys.id = split_part(NEW.id, ' ', 1)),
             'level', NEW.level, 'amount_nanos', NEW.amount, 'spent_nanos', NEW.spent,
             'period_start', NEW.period_start, 'period_end', NEW.period_end) AS TEXT)
         FROM event_settings WHERE event_settings.id = 1 AND budget_levels = 1
         ON CONFLICT (name) DO NOTHING;
         RETURN NULL;
       END $$`,
    // A row only moves forward: its level rises within a period, and begins anew with the next one. A charge of an earlier
    // version, whose level is the number of those that are reached, sets no amount: the event comes with the next charge.
    `CREATE TRIGGER budget_reached_level_by_insert AFTER INSERT ON budgets FOR EACH ROW
       WHEN (NEW.level > 0 AND NEW.amount IS NOT NULL) EXECUTE FUNCTION note_budget_level()`,
    `CREATE TRIGGER budget_reached_level_by_update AFTER UPDATE OF amount ON budgets FOR EACH ROW
       WHEN (NEW.level > 0 AND (NEW.level > OLD.level OR NEW.period_start > OLD.period_start))
       EXECUTE FUNCTION note_budget_level()`,
    // What is free and held together falls with charges alone: no other change of an account has to be compared.
    `DROP TRIGGER balance_fell ON accounts`,
    balanceFell('spent'),
  ],
};

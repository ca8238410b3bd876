/**
 * The time in milliseconds since 1970, with what every SQLite has: a trigger on accounts that needs a function of this process
 * would refuse every other tool that writes there.
 */
const nowMs = `CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)`;

const newEventId = `'evt_' || printf('%012x', ${nowMs}) || lower(hex(randomblob(10)))`;

/**
 * The trigger that notes a balance which falls below its mark, on changes of some columns. Steps of the schema have this text.
 */
export function balanceFell(columns: string): string {
  return `CREATE TRIGGER balance_fell AFTER UPDATE OF ${columns} ON accounts
       WHEN OLD.balance + OLD.held >= NEW.low_mark AND NEW.balance + NEW.held < NEW.low_mark
       BEGIN
         INSERT INTO outbox (id, name, type, subject, position, created_at, data)
         SELECT ${newEventId},
           'balance.low:' || NEW.key_id || ':' || NEW.postings, 'balance.low', 'key:' || NEW.key_id, NEW.postings, ${nowMs},
           json_object('key_id', NEW.key_id, 'key_name', api_keys.name, 'balance_nanos', NEW.balance + NEW.held,
             'low_balance_nanos', NEW.low_mark)
         FROM api_keys WHERE api_keys.id = NEW.key_id
         ON CONFLICT (name) DO NOTHING;
       END`;
}

/**
 * The trigger that notes a budget which has reached a level, on a kind of change. A row only moves forward: its level rises
 * within a period, and begins anew with the next one.
 */
export function budgetReached(change: 'insert' | 'update'): string {
  const [on, isNew] =
    change === 'insert'
      ? ['INSERT', '']
      : ['UPDATE OF level', ' AND (NEW.level > OLD.level OR NEW.period_start > OLD.period_start)'];
  return `CREATE TRIGGER budget_reached_level_by_${change} AFTER ${on} ON budgets
       WHEN NEW.level > 0${isNew}
       BEGIN
         INSERT INTO outbox (id, name, type, subject, position, created_at, data)
         SELECT ${newEventId}, 'budget.level:' || NEW.id || ':' || NEW.period_start || ':' || NEW.level, 'budget.level',
           'budget:' || NEW.id, NEW.period_start + NEW.level, ${nowMs},
           json_object('budget', NEW.id,
             'key_name', (SELECT name FROM api_keys WHERE api_keys.id = substr(NEW.id, 1, instr(NEW.id, ' ') - 1)),
             'level', NEW.level, 'amount_nanos', NEW.amount, 'spent_nanos', NEW.spent,
             'period_start', NEW.period_start, 'period_end', NEW.period_end)
         FROM event_settings WHERE event_settings.id = 1 AND budget_levels = 1
         ON CONFLICT (name) DO NOTHING;
       END`;
}

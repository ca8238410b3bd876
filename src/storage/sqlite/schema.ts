import type { Migration } from '../migration.ts';
import { markOf } from '../outbox/mark-of-key.ts';
import { books } from '../schema/books.ts';
import { events } from '../schema/events.ts';
import { ledger } from '../schema/ledger.ts';
import { sql } from '../schema/parts.ts';
import { countRecord, usage } from '../schema/usage.ts';

/** A trigger that refuses a change. */
const refusal = (name: string, change: string, reason: string): string =>
  `CREATE TRIGGER ${name} BEFORE ${change} BEGIN SELECT RAISE(ABORT, '${reason}'); END;`;

/** What nothing may change: rows of the ledger, unless they are folded; seals and roots. */
const refusals = [
  refusal('ledger_is_never_changed', 'UPDATE ON ledger', 'the ledger is append-only'),
  refusal(
    'ledger_is_shortened_by_folds_alone',
    `DELETE ON ledger
  WHEN OLD.number > coalesce((SELECT number FROM ledger_folds WHERE key_id = OLD.key_id), 0)`,
    'the ledger is append-only',
  ),
  ...['ledger_seals', 'ledger_roots'].flatMap((table) =>
    ['UPDATE', 'DELETE'].map((change) =>
      refusal(`${table}_refuses_${change.toLowerCase()}`, `${change} ON ${table}`, `${table} is append-only`),
    ),
  ),
  // What is folded could not be hashed any more, and no statement could begin behind it.
  ...['INSERT', 'UPDATE'].map((change) =>
    refusal(
      `ledger_folds_are_sealed_on_${change.toLowerCase()}`,
      `${change} ON ledger_folds
  WHEN EXISTS (SELECT 1 FROM ledger WHERE key_id = NEW.key_id AND number <= NEW.number)
    AND NOT EXISTS (SELECT 1 FROM ledger_seals WHERE key_id = NEW.key_id AND number = NEW.number)`,
      'the postings of a fold are not sealed',
    ),
  ),
];

/**
 * The time in milliseconds since 1970, with what every SQLite has: a trigger on accounts that needs a function of this process
 * would refuse every other tool that writes there.
 */
const nowMs = `CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)`;

const newEventId = `'evt_' || printf('%012x', ${nowMs}) || lower(hex(randomblob(10)))`;

/** The trigger that notes a budget which has reached a level. */
const budgetReached = (name: string, change: string): string => `
CREATE TRIGGER budget_reached_level_by_${name} AFTER ${change}
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
END;`;

const triggers = sql`
${refusals.join('\n')}

-- Usage is counted in the transaction that writes a record.
CREATE TRIGGER usage_of_new_record AFTER INSERT ON records BEGIN ${countRecord('NEW', '', 'sqlite')} END;
CREATE TRIGGER usage_of_changed_record AFTER UPDATE ON records BEGIN ${countRecord('OLD', '-', 'sqlite')} ${countRecord('NEW', '', 'sqlite')} END;

CREATE TRIGGER account_gets_mark AFTER INSERT ON accounts WHEN NEW.low_mark IS NULL
BEGIN UPDATE accounts SET low_mark = ${markOf('NEW.key_id')} WHERE key_id = NEW.key_id; END;
CREATE TRIGGER mark_of_key_changed AFTER UPDATE OF low_balance ON api_keys WHEN OLD.low_balance IS NOT NEW.low_balance
BEGIN UPDATE accounts SET low_mark = ${markOf('NEW.id')} WHERE key_id = NEW.id; END;

-- In the unit that charges, so that neither a kill nor a power failure parts the crossing and its event. What is free and held
-- together falls with charges alone: no other change of an account has to be compared.
CREATE TRIGGER balance_fell AFTER UPDATE OF spent ON accounts
WHEN OLD.balance + OLD.held >= NEW.low_mark AND NEW.balance + NEW.held < NEW.low_mark
BEGIN
  INSERT INTO outbox (id, name, type, subject, position, created_at, data)
  SELECT ${newEventId},
    'balance.low:' || NEW.key_id || ':' || NEW.postings, 'balance.low', 'key:' || NEW.key_id, NEW.postings, ${nowMs},
    json_object('key_id', NEW.key_id, 'key_name', api_keys.name, 'balance_nanos', NEW.balance + NEW.held,
      'low_balance_nanos', NEW.low_mark)
  FROM api_keys WHERE api_keys.id = NEW.key_id
  ON CONFLICT (name) DO NOTHING;
END;

-- A row only moves forward: its level rises within a period, and begins anew with the next one.
${budgetReached('insert', 'INSERT ON budgets\nWHEN NEW.level > 0')}
${budgetReached(
  'update',
  `UPDATE OF level ON budgets
WHEN NEW.level > 0 AND (NEW.level > OLD.level OR NEW.period_start > OLD.period_start)`,
)}
`;

/** Every step of the schema, in order. */
export const migrations: readonly Migration[] = [
  {
    number: 1,
    name: 'the first tables',
    sql: sql`${books}${ledger}${usage}${events}${triggers}`('sqlite'),
  },
];

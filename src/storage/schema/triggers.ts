import { either, sql } from './parts.ts';
import { dimensionNames, sumNames } from './tables.ts';
import { outcomeOf } from './requests.ts';

/** Adds a record to the sums of its hour, or takes it off them, and marks its day if that is rolled up: for a trigger. */
export function countRecord(row: 'NEW' | 'OLD', sign: '' | '-'): string {
  return `
  INSERT INTO usage_hours (hour, ${dimensionNames}, ${sumNames.join(', ')})
  SELECT ${row}.created_at / 3600000 * 3600000, accounts.key_id, group_name, model, upstream, ${outcomeOf('record_kinds')}, tag,
    ${sign}1, ${sign}coalesce(${row}.input_tokens, 0), ${sign}coalesce(${row}.cached_input_tokens, 0),
    ${sign}coalesce(${row}.cache_write_tokens, 0), ${sign}coalesce(${row}.output_tokens, 0),
    ${sign}coalesce(${row}.reasoning_tokens, 0), ${sign}${row}.charge
  FROM record_kinds, accounts WHERE record_kinds.number = ${row}.kind AND accounts.number = ${row}.account
  ON CONFLICT (hour, ${dimensionNames}) DO UPDATE SET
    ${sumNames.map((name) => `${name} = usage_hours.${name} + excluded.${name}`).join(', ')};
  UPDATE usage_periods SET state = 'stale'
  WHERE period = 'day' AND start = ${row}.created_at / 86400000 * 86400000 AND state <> 'stale';`;
}

/** With what every SQLite has: a trigger that needs a function of this process would refuse every other tool that writes. */
const nowMs = either(`CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)`, 'now_ms()');

const newEventId = either(
  `'evt_' || printf('%012x', ${nowMs('sqlite')}) || lower(hex(randomblob(10)))`,
  `'evt_' || lpad(to_hex(now_ms()), 12, '0') || left(replace(CAST(gen_random_uuid() AS TEXT), '-', ''), 20)`,
);

const jsonObject = either('json_object', 'json_build_object');

const keyOfBudget = either(`substr(NEW.id, 1, instr(NEW.id, ' ') - 1)`, `split_part(NEW.id, ' ', 1)`);

/** Adds the event of an account whose balance falls below its mark: for a trigger. */
export const addLowBalance = sql`
  INSERT INTO outbox (id, name, type, subject, position, created_at, data)
  SELECT ${newEventId}, 'balance.low:' || NEW.key_id || ':' || NEW.postings, 'balance.low',
    'key:' || NEW.key_id, NEW.postings, ${nowMs},
    CAST(${jsonObject}('key_id', NEW.key_id, 'key_name', api_keys.name, 'balance_nanos', NEW.balance + NEW.held,
      'low_balance_nanos', NEW.low_mark) AS TEXT)
  FROM api_keys WHERE api_keys.id = NEW.key_id
  ON CONFLICT (name) DO NOTHING;`;

/** Adds the event of a budget that reaches a level: for a trigger. */
export const addBudgetLevel = sql`
  INSERT INTO outbox (id, name, type, subject, position, created_at, data)
  SELECT ${newEventId}, 'budget.level:' || NEW.id || ':' || NEW.period_start || ':' || NEW.level, 'budget.level',
    'budget:' || NEW.id, NEW.period_start + NEW.level, ${nowMs},
    CAST(${jsonObject}('budget', NEW.id, 'key_name', (SELECT name FROM api_keys WHERE api_keys.id = ${keyOfBudget}),
      'level', NEW.level, 'amount_nanos', NEW.amount, 'spent_nanos', NEW.spent,
      'period_start', NEW.period_start, 'period_end', NEW.period_end) AS TEXT)
  FROM event_settings WHERE event_settings.id = 1 AND budget_levels = 1
  ON CONFLICT (name) DO NOTHING;`;

/**
 * The mark of a low balance that is in force for a key, given as an expression; `NULL` where no webhook wants to know. Steps of
 * the schema have this text.
 */
export function markOf(keyId: string): string {
  return `(SELECT CASE WHEN event_settings.low_balance IS NULL THEN NULL
    ELSE coalesce(api_keys.low_balance, event_settings.low_balance) END
    FROM api_keys JOIN event_settings ON event_settings.id = 1 WHERE api_keys.id = ${keyId})`;
}

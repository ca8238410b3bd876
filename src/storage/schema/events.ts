import { byKey, either, id, sql } from './parts.ts';

/** Events and their deliveries to webhooks. */
export const events = sql`
-- What the processes write of their config: one row.
CREATE TABLE event_settings (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  low_balance BIGINT, -- of the keys without one of their own; NULL where no event is wanted
  is_applied INTEGER NOT NULL DEFAULT 0, -- 1 where all accounts have their low_mark by it
  budget_levels INTEGER NOT NULL DEFAULT 0 -- 1 where an event is wanted when a budget reaches a level
);

CREATE TABLE outbox (
  id ${id} PRIMARY KEY,
  name ${id} NOT NULL UNIQUE, -- what has happened, once
  type TEXT NOT NULL,
  subject ${id} NOT NULL, -- events of a subject are delivered one after the other, in the order of their positions
  position BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  data TEXT NOT NULL, -- JSON
  kept_until BIGINT NOT NULL DEFAULT 0, -- until when its name has to be remembered
  stage INTEGER NOT NULL DEFAULT 0 -- 0 as long as it has no deliveries, 1 in the unit that makes them, then 2
)${byKey};
CREATE INDEX outbox_by_stage ON outbox (stage, position, created_at, id) WHERE stage < 2;
CREATE INDEX outbox_by_time ON outbox (created_at, id);

CREATE TABLE webhook_deliveries (
  event_id ${id} NOT NULL,
  webhook ${id} NOT NULL,
  number BIGINT NOT NULL UNIQUE, -- the order of all deliveries
  subject ${id} NOT NULL,
  since BIGINT NOT NULL, -- from when on its attempts count
  state ${id} NOT NULL CHECK (state IN ('waiting', 'delivered', 'dead')),
  attempts INTEGER NOT NULL DEFAULT 0,
  due_at BIGINT, -- NULL behind an earlier one of its subject
  ended_at BIGINT,
  result TEXT, -- of the last attempt
  PRIMARY KEY (event_id, webhook)
)${byKey};
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook, due_at, number) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_deliveries_in_order ON webhook_deliveries (webhook, subject, number) WHERE ended_at IS NULL;
CREATE INDEX webhook_deliveries_oldest ON webhook_deliveries (since) WHERE ended_at IS NULL;
CREATE INDEX webhook_deliveries_by_state ON webhook_deliveries (state, number);
CREATE INDEX webhook_deliveries_by_webhook ON webhook_deliveries (webhook, number);
CREATE INDEX webhook_deliveries_by_both ON webhook_deliveries (webhook, state, number);
CREATE INDEX webhook_deliveries_ended ON webhook_deliveries (ended_at) WHERE ended_at IS NOT NULL;

-- The upstreams that are down, and the processes that see it.
CREATE TABLE upstream_outages (upstream ${id} PRIMARY KEY, since BIGINT NOT NULL)${byKey};
CREATE TABLE upstream_outage_nodes (
  upstream ${id} NOT NULL, owner ${id} NOT NULL, PRIMARY KEY (upstream, owner)
)${byKey};
`;

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

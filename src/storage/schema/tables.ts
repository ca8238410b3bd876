import { byKey, bytes, either, filled, id, postgres, rowNumber, sql, sqlite } from './parts.ts';
import { requestRows } from './requests.ts';

/** The gateway does not have it checked, but other tools that write do. */
const ofKey = sqlite(' REFERENCES api_keys (id)');

/** What tells the sums of usage apart, beside their time: none is NULL, and an empty text stands for none. */
const dimensions = sql`
  key_id ${id} NOT NULL, group_name ${id} NOT NULL, model ${id} NOT NULL,
  upstream ${id} NOT NULL, outcome ${id} NOT NULL, tag ${id} NOT NULL`;
export const dimensionNames = 'key_id, group_name, model, upstream, outcome, tag';

/** Not taken from what the queries add up: a step of the schema must not change with the code. */
export const sumNames = [
  'requests',
  'input_tokens',
  'cached_input_tokens',
  'cache_write_tokens',
  'output_tokens',
  'reasoning_tokens',
  'charge',
];
const sums = sumNames.map((name) => `${name} BIGINT NOT NULL`).join(',\n  ');

/**
 * All tables that both engines have, in the order in which they are created; `src/storage/postgres/schema.ts` has those by which
 * processes share a database. Times are in milliseconds since 1970, and amounts of money in nano-USD. The rows of
 * requests stand beside the views in which they are read.
 */
export const tables = sql`
-- KEYS, THEIR MONEY AND THEIR REQUESTS. Nothing checks references where requests write: every statement takes them from
-- the row that it refers to, and PostgreSQL would lock a row for each.

-- The keys of clients. A limit that is NULL is the service's default.
CREATE TABLE api_keys (
  id ${id} PRIMARY KEY,
  hash ${id} NOT NULL UNIQUE, -- of its secret
  name TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  concurrency INTEGER, requests_per_minute INTEGER,
  compatibility TEXT NOT NULL DEFAULT '{}', -- JSON: its own settings of how requests are read
  models TEXT, -- JSON: those that it may use; NULL for all
  expires_at BIGINT, revoked_at BIGINT,
  queue_wait_ms INTEGER,
  declared INTEGER NOT NULL DEFAULT 0, -- 1 where the config declares it
  allow_from TEXT, -- JSON: the networks from which it may be used; NULL for all
  tags TEXT, -- JSON: those that its requests may have
  tokens_per_minute INTEGER, tokens_per_day INTEGER,
  budget TEXT, -- JSON: what it may spend in a period of the calendar
  low_balance BIGINT, -- the balance below which it counts as low
  group_name ${id},
  weight INTEGER -- its weight in the queues of upstreams; a further step adds join_retries_ms
);
CREATE INDEX api_keys_by_creation ON api_keys (created_at, id);
CREATE UNIQUE INDEX api_keys_declared ON api_keys (name) WHERE declared = 1;
CREATE INDEX api_keys_by_expiry ON api_keys (expires_at, id) WHERE expires_at IS NOT NULL;

-- Secrets that were replaced, and are valid for a while.
CREATE TABLE old_secrets (
  hash ${id} PRIMARY KEY, key_id ${id} NOT NULL REFERENCES api_keys (id), valid_until BIGINT NOT NULL
);
CREATE INDEX old_secrets_by_key ON old_secrets (key_id);

-- The money of a key: what is free, what its running requests hold, and what it was charged.
CREATE TABLE accounts (
  ${rowNumber}, -- stands for the key in the rows of its requests
  key_id ${id} ${either('NOT NULL UNIQUE', 'PRIMARY KEY')}${ofKey},
  balance BIGINT, -- NULL where it does not pay in advance
  held BIGINT NOT NULL DEFAULT 0,
  spent BIGINT NOT NULL DEFAULT 0,
  postings BIGINT NOT NULL DEFAULT 0, -- the number of its last row in the ledger
  last_request ${bytes}, last_hold BIGINT, -- the last one that has begun: to begin it again is an error, and no refusal
  low_mark BIGINT -- the low_balance in force, here so that a settlement reads no other row; NULL for none
)${filled(50)};

-- What was spent of a budget of a key or a group, in its newest period.
CREATE TABLE budgets (
  id ${id} PRIMARY KEY, -- the key or the group, and the calendar
  period_start BIGINT NOT NULL, period_end BIGINT NOT NULL,
  spent BIGINT NOT NULL DEFAULT 0, held BIGINT NOT NULL DEFAULT 0,
  level INTEGER NOT NULL DEFAULT 0, -- the highest warning level that was reached, in thousandths of the amount
  amount BIGINT -- in force at the last charge
)${byKey}${filled(50)};

-- The processes that use the database, with their leases. A further step adds the address of each.
CREATE TABLE owners (
  id ${id} PRIMARY KEY,
  since BIGINT NOT NULL, -- from when on its lease was held without interruption
  renewed_at BIGINT NOT NULL${postgres(`,\n  name TEXT NOT NULL DEFAULT ''`)}
)${byKey}${filled(50)};

${requestRows}
-- The time before which records were removed: one row, if any.
CREATE TABLE record_removals (id INTEGER PRIMARY KEY CHECK (id = 1), removed_before BIGINT NOT NULL);

-- THE LEDGER, what is left of its old rows, and what proves it.

-- Changes of balances, numbered by account, so that those of one lie together: credits, and the charges of records that were
-- removed. A charge whose record is there is a row of record_rows alone.
CREATE TABLE ledger_rows (
  key_id ${id} NOT NULL,
  number BIGINT NOT NULL CHECK (number > 0),
  created_at BIGINT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('credit', 'charge')),
  delta BIGINT NOT NULL,
  request_id ${id}, -- of a charge
  reference TEXT, -- of a credit: the payment, which is booked once
  posting TEXT, -- names the unit that booked a credit
  PRIMARY KEY (key_id, number)
)${byKey};
CREATE UNIQUE INDEX ledger_by_reference ON ledger_rows (key_id, reference) WHERE reference IS NOT NULL;

-- The sums of the rows up to a number, which were removed with their records.
CREATE TABLE ledger_folds (
  key_id ${id} PRIMARY KEY, number BIGINT NOT NULL CHECK (number > 0),
  credits BIGINT NOT NULL, charges BIGINT NOT NULL
)${byKey};
-- The credits among them, one by one: their references are refused for ever, and there are few of them.
CREATE TABLE folded_credits (
  key_id ${id} NOT NULL, number BIGINT NOT NULL, created_at BIGINT NOT NULL,
  delta BIGINT NOT NULL, reference TEXT, posting TEXT NOT NULL,
  PRIMARY KEY (key_id, number)
)${byKey};
CREATE UNIQUE INDEX folded_credits_by_reference ON folded_credits (key_id, reference) WHERE reference IS NOT NULL;

-- The hash of the chain of an account up to a row, and the balance there.
CREATE TABLE ledger_seals (
  key_id ${id} NOT NULL, number BIGINT NOT NULL CHECK (number > 0),
  hash TEXT NOT NULL, balance BIGINT NOT NULL,
  PRIMARY KEY (key_id, number)
)${byKey};
-- The same for a root: the last row of each account that is in it.
CREATE TABLE ledger_heads (
  key_id ${id} NOT NULL, root BIGINT NOT NULL, number BIGINT NOT NULL, hash TEXT NOT NULL,
  PRIMARY KEY (key_id, root)
)${byKey};
CREATE TABLE ledger_roots (
  number BIGINT PRIMARY KEY,
  created_at BIGINT NOT NULL,
  previous TEXT NOT NULL, -- the hash of the root before
  tree TEXT NOT NULL, -- the hash over all heads
  accounts BIGINT NOT NULL, -- how many heads there are
  hash TEXT NOT NULL -- of the root itself
)${byKey};
-- How often heads were stored, by which two processes that make a root notice each other: one row.
CREATE TABLE ledger_root_work (id INTEGER PRIMARY KEY CHECK (id = 1), changes BIGINT NOT NULL);
INSERT INTO ledger_root_work VALUES (1, 0);

-- The keys that sign statements.
CREATE TABLE statement_keys (
  id ${id} PRIMARY KEY,
  pem TEXT NOT NULL,
  private_pem TEXT, -- NULL where the config has it
  created_at BIGINT NOT NULL
)${byKey};

-- USAGE: running sums, which triggers on the records keep, and other counts of keys.

-- The sums of each hour. A record that is removed stays counted.
CREATE TABLE usage_hours (
  hour BIGINT NOT NULL,
  ${dimensions},
  ${sums},
  PRIMARY KEY (hour, ${dimensionNames})
)${byKey}${filled(80)};

-- The same of days and months, by fewer dimensions: the text of one that is left out is empty.
CREATE TABLE usage_rollups (
  kind ${id} NOT NULL, -- the period, and by which dimensions
  start BIGINT NOT NULL,
  ${dimensions},
  ${sums},
  PRIMARY KEY (kind, start, ${dimensionNames})
)${byKey}${filled(80)};

-- Which days and months are rolled up: the sums of any other one are those of its hours.
CREATE TABLE usage_periods (
  period ${id} NOT NULL CHECK (period IN ('day', 'month')),
  start BIGINT NOT NULL,
  state ${id} NOT NULL CHECK (state IN ('stale', 'rolling', 'rolled')),
  barrier BIGINT, -- the transactions with lower numbers have to end first: they may not have seen that it is rolled up
  next_hour BIGINT NOT NULL, -- how far it is
  PRIMARY KEY (period, start)
)${byKey};

-- The tokens that keys used, in slices of the windows of their limits.
CREATE TABLE token_use (
  key_id ${id} NOT NULL, length_ms BIGINT NOT NULL, slice_at BIGINT NOT NULL, tokens BIGINT NOT NULL,
  PRIMARY KEY (key_id, length_ms, slice_at)
)${byKey}${filled(50)};

-- How many requests of a key were refused on a day, by limit.
CREATE TABLE refusals (
  day BIGINT NOT NULL, key_id ${id} NOT NULL, limit_name ${id} NOT NULL, requests BIGINT NOT NULL,
  PRIMARY KEY (day, key_id, limit_name)
)${byKey}${filled(80)};

-- EVENTS and their deliveries to webhooks.

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

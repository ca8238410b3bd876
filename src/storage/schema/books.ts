import { byKey, filled, id, postgres, sql, sqlite } from './parts.ts';

/** The gateway does not have it checked, but other tools that write do. */
const ofKey = sqlite(' REFERENCES api_keys (id)');

/**
 * Keys, their money, and their requests. Times are in milliseconds since 1970, and amounts of money in nano-USD. Nothing
 * checks references where requests write: the audit finds what a foreign key would, and PostgreSQL would lock a row for each.
 */
export const books = sql`
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
  weight INTEGER -- its weight in the queues of upstreams
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
  key_id ${id} PRIMARY KEY${ofKey},
  balance BIGINT, -- NULL where it does not pay in advance
  held BIGINT NOT NULL DEFAULT 0,
  spent BIGINT NOT NULL DEFAULT 0,
  postings BIGINT NOT NULL DEFAULT 0, -- the number of its last row in the ledger
  last_request TEXT, last_hold BIGINT, -- the last one that has begun: to begin it again is an error, and no refusal
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

-- The processes that use the database, with their leases.
CREATE TABLE owners (
  id ${id} PRIMARY KEY,
  since BIGINT NOT NULL, -- from when on its lease was held without interruption
  renewed_at BIGINT NOT NULL${postgres(`,\n  name TEXT NOT NULL DEFAULT ''`)}
)${byKey}${filled(50)};

-- Requests in progress.
CREATE TABLE open_requests (
  request_id ${id} PRIMARY KEY,
  key_id ${id} NOT NULL,
  owner ${id} NOT NULL,
  created_at BIGINT NOT NULL,
  protocol TEXT NOT NULL, mode TEXT NOT NULL, model TEXT NOT NULL, upstream TEXT NOT NULL,
  queued_ms INTEGER NOT NULL,
  price_input BIGINT NOT NULL, price_cached_input BIGINT NOT NULL, price_cache_write BIGINT NOT NULL,
  price_output BIGINT NOT NULL, -- like those before, of a million tokens
  price_request BIGINT NOT NULL,
  hold BIGINT NOT NULL, -- what is set aside of the balance
  tag TEXT,
  budget ${id}, budget_period BIGINT, -- that of its key in which it counts
  budget_hold BIGINT, -- what is set aside in that one and in that of the group
  group_budget ${id}, group_period BIGINT,
  group_name TEXT
)${byKey}${filled(50)};

-- Requests that have ended, as they were begun and settled. One that its process left open is closed as lost.
CREATE TABLE records (
  request_id ${id} PRIMARY KEY,
  key_id ${id} NOT NULL${ofKey},
  created_at BIGINT NOT NULL,
  protocol TEXT NOT NULL, mode TEXT NOT NULL, model TEXT NOT NULL, upstream TEXT NOT NULL,
  queued_ms INTEGER NOT NULL,
  outcome TEXT NOT NULL, status INTEGER NOT NULL,
  input_tokens BIGINT, cached_input_tokens BIGINT, cache_write_tokens BIGINT, -- the first with the other two
  output_tokens BIGINT, reasoning_tokens BIGINT, -- the first with the other one
  usage_source TEXT, -- who has counted the tokens
  first_byte_ms INTEGER, total_ms INTEGER, -- from the arrival to the first text, and to the end
  price_input BIGINT NOT NULL DEFAULT 0, price_cached_input BIGINT NOT NULL DEFAULT 0,
  price_cache_write BIGINT NOT NULL DEFAULT 0, price_output BIGINT NOT NULL DEFAULT 0,
  price_request BIGINT NOT NULL DEFAULT 0,
  hold BIGINT NOT NULL DEFAULT 0, charge BIGINT NOT NULL DEFAULT 0,
  unbooked BIGINT NOT NULL DEFAULT 0, -- the part of its price that the sums of its account could not take
  settlement TEXT, -- the posting of its charge; NULL where it was closed as lost
  attempts TEXT NOT NULL DEFAULT '[]', -- JSON: the calls of upstreams
  late INTEGER NOT NULL DEFAULT 0, -- 1 where it was closed as lost before, 2 where its beginning was forgotten
  tag TEXT,
  budget ${id}, budget_period BIGINT, budget_hold BIGINT,
  group_budget ${id}, group_period BIGINT,
  failure TEXT, -- JSON: why it failed
  group_name TEXT
)${postgres(' PARTITION BY RANGE (request_id)')};
CREATE INDEX records_by_key ON records (key_id, created_at, request_id);
CREATE INDEX records_by_time ON records (created_at, request_id);
-- Older than the next one: of two indexes of the same estimated cost SQLite takes the older one, and with that by model it
-- would read the records of all keys for a page of one key and one model.
CREATE INDEX records_by_key_and_model ON records (key_id, model, created_at, request_id);
CREATE INDEX records_by_model ON records (model, created_at, request_id);
CREATE INDEX records_by_budget ON records (budget, budget_period, request_id) WHERE budget IS NOT NULL;
CREATE INDEX records_by_group_budget ON records (group_budget, group_period, request_id)
  WHERE group_budget IS NOT NULL;

-- The time before which records were removed: one row, if any.
CREATE TABLE record_removals (id INTEGER PRIMARY KEY CHECK (id = 1), removed_before BIGINT NOT NULL);
`;

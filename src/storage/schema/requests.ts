import { byKey, bytes, either, id, postgres, sql, sqlite } from './parts.ts';
import type { Part } from './parts.ts';

/** The tables that have a row for each request, which is compact therefore. */
export const requestRows = sql`
-- REQUESTS. The id of each is its time and the rest of it, the tail: rows of new requests lie side by side.

-- What many requests have in common: each combination once. An empty text stands for what is not there.
CREATE TABLE record_kinds (
  number ${either('INTEGER', 'BIGINT')} PRIMARY KEY, -- made of what it says, so that it means nothing else in a database that was restored
  protocol ${id} NOT NULL, mode ${id} NOT NULL, model ${id} NOT NULL, upstream ${id} NOT NULL,
  attempt_model ${id} NOT NULL, -- the model's name at the upstream, where the record describes its one call
  tag ${id} NOT NULL, group_name ${id} NOT NULL,
  outcome ${id} NOT NULL, status INTEGER NOT NULL, -- empty and 0 as long as a request is open
  usage_source ${id} NOT NULL, -- who has counted the tokens
  price_input BIGINT NOT NULL, price_cached_input BIGINT NOT NULL, price_cache_write BIGINT NOT NULL,
  price_output BIGINT NOT NULL, -- like those before, of a million tokens
  price_request BIGINT NOT NULL,
  UNIQUE (model, upstream, attempt_model, tag, group_name, outcome, status, usage_source, protocol, mode,
    price_input, price_cached_input, price_cache_write, price_output, price_request)
);

-- Requests in progress.
CREATE TABLE open_rows (
  created_at BIGINT NOT NULL, tail ${bytes} NOT NULL,
  account INTEGER NOT NULL, kind BIGINT NOT NULL, queued_ms INTEGER NOT NULL,
  owner ${id} NOT NULL,
  hold BIGINT NOT NULL, -- what is set aside of the balance
  budget ${id}, budget_period BIGINT, -- that of its key in which it counts
  budget_hold BIGINT, -- what is set aside in that one and in that of the group
  group_budget ${id}, group_period BIGINT,
  PRIMARY KEY (created_at, tail)
)${byKey};

-- Requests that have ended. One that its process left open is closed as lost: it keeps the kind of an open request.
CREATE TABLE record_rows (
  created_at BIGINT NOT NULL,
  charge BIGINT NOT NULL DEFAULT 0,
  charge_number BIGINT, -- of the charge in the ledger of its key; NULL where nothing was charged
  hold BIGINT NOT NULL DEFAULT 0,
  input_tokens BIGINT, output_tokens BIGINT, -- both or none
  cached_input_tokens BIGINT, cache_write_tokens BIGINT, reasoning_tokens BIGINT, -- parts of those; NULL for none
  kind BIGINT NOT NULL,
  unbooked BIGINT, -- the part of its price that the sums of its account could not take
  account INTEGER NOT NULL${sqlite(' REFERENCES accounts (number)')},
  queued_ms INTEGER NOT NULL,
  settled_ms BIGINT, -- from its arrival to its settlement; NULL where it was closed as lost
  first_byte_ms INTEGER, total_ms INTEGER, -- from its arrival to the first text, and to the end
  attempt_started_ms INTEGER, attempt_ms INTEGER, -- from its arrival to its one call of an upstream, and how long that took
  tail ${bytes} NOT NULL,
  late INTEGER, -- 1 where it was closed as lost before, 2 where its beginning was forgotten
  attempts TEXT, -- JSON: its calls, where there are more of them, or there is more to say
  failure TEXT, -- JSON: why it failed
  budget ${id}, budget_period BIGINT, budget_hold BIGINT,
  group_budget ${id}, group_period BIGINT,
  PRIMARY KEY (created_at, tail)
)${byKey}${postgres(' PARTITION BY RANGE (created_at)')};
CREATE INDEX records_by_key ON record_rows (account, created_at);
CREATE INDEX records_by_charge ON record_rows (account, charge_number) WHERE charge_number IS NOT NULL;
CREATE INDEX records_by_budget ON record_rows (budget, budget_period, created_at) WHERE budget IS NOT NULL;
CREATE INDEX records_by_group_budget ON record_rows (group_budget, group_period, created_at)
  WHERE group_budget IS NOT NULL;
`;

/** Whether something went wrong with an ended request: it failed, one of its calls did, or it was closed as lost. */
export const hasFailed = '(failure IS NOT NULL OR attempts IS NOT NULL OR settled_ms IS NULL)';

/** By which failures are found among all records: a further step of both engines. Most records are not in it. */
export const failureIndex = sql`CREATE INDEX records_by_failure ON record_rows (created_at, tail) WHERE ${hasFailed};
`;

/** The id of the request that a row is of, as it was given to the client. */
export const requestIdOf = (row: string): Part =>
  either(
    `'req_' || printf('%012x', ${row}.created_at) || lower(hex(${row}.tail))`,
    `'req_' || lpad(to_hex(${row}.created_at), 12, '0') || encode(${row}.tail, 'hex')`,
  );

/** How a request ended that has a record: one whose kind says nothing of its end was closed as lost. */
export function outcomeOf(kind: string): string {
  return `CASE WHEN ${kind}.outcome = '' THEN 'lost' ELSE ${kind}.outcome END`;
}

/** What a record says of its beginning. */
const beginningOf = (row: string): Part => sql`
  ${requestIdOf(row)} AS request_id, accounts.key_id AS key_id, ${row}.created_at AS created_at, ${row}.tail AS tail,
  protocol, mode, model, upstream, nullif(record_kinds.tag, '') AS tag, nullif(group_name, '') AS group_name, queued_ms,
  price_input, price_cached_input, price_cache_write, price_output, price_request, hold,
  budget, budget_period, budget_hold, group_budget, group_period`;

/** A compact table with what its numbers stand for. PostgreSQL locks tables in this order, which is that of all other units. */
const withNames = (
  table: string,
  row: string,
): string => `accounts JOIN ${table} AS ${row} ON ${row}.account = accounts.number
  JOIN record_kinds ON record_kinds.number = ${row}.kind`;

/**
 * The compact tables as they are read, by the gateway and by people. A record is found by its time and the rest of its id, in
 * which they are in the order of time, or by its key: a query by its id, which is put together here, reads all of them.
 */
export const views = sql`
CREATE VIEW records AS SELECT ${beginningOf('record')},
  ${outcomeOf('record_kinds')} AS outcome, CASE WHEN record_kinds.outcome = '' THEN 500 ELSE status END AS status,
  input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens,
  CASE WHEN record_kinds.outcome = '' THEN 'none' ELSE usage_source END AS usage_source, first_byte_ms, total_ms,
  charge, coalesce(unbooked, 0) AS unbooked, charge_number, record.created_at + settled_ms AS settled_at,
  attempts, attempt_model, attempt_started_ms, attempt_ms, failure, coalesce(late, 0) AS late
  FROM ${withNames('record_rows', 'record')};

CREATE VIEW open_requests AS SELECT ${beginningOf('open')}, open.owner AS owner
  FROM ${withNames('open_rows', 'open')};

-- Every change of a balance.
CREATE VIEW ledger AS
  SELECT key_id, number, created_at, kind, delta, request_id, reference, 0 AS has_record FROM ledger_rows
  UNION ALL
  SELECT accounts.key_id, charge_number, record.created_at + settled_ms, 'charge', -charge, ${requestIdOf('record')}, NULL, 1
  FROM accounts JOIN record_rows AS record ON record.account = accounts.number WHERE charge_number IS NOT NULL;
`;

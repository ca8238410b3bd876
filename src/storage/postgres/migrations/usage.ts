import type { Migration } from '../../migration.ts';

const dimensions = `key_id TEXT COLLATE "C" NOT NULL,
       model TEXT COLLATE "C" NOT NULL,
       upstream TEXT COLLATE "C" NOT NULL,
       outcome TEXT COLLATE "C" NOT NULL,
       tag TEXT COLLATE "C" NOT NULL`;

const sums = `requests BIGINT NOT NULL,
       input_tokens BIGINT NOT NULL,
       cached_input_tokens BIGINT NOT NULL,
       cache_write_tokens BIGINT NOT NULL,
       output_tokens BIGINT NOT NULL,
       reasoning_tokens BIGINT NOT NULL,
       charge BIGINT NOT NULL`;

const columns = `hour, key_id, model, upstream, outcome, tag, requests, input_tokens, cached_input_tokens,
  cache_write_tokens, output_tokens, reasoning_tokens, charge`;

/**
 * Adds a record to the sums of its hour, or takes it off them. Its account is locked by then, so no other settlement waits
 * for these rows. Its day is marked if it is rolled up: that row is shared, and so it is only locked where it says something
 * else, and behind all other rows of a settlement but those of its own account and request.
 */
const count = (row: 'NEW' | 'OLD', sign: '' | '-'): string => `
  INSERT INTO usage_hours AS counted (${columns})
  VALUES (${row}.created_at / 3600000 * 3600000, ${row}.key_id, ${row}.model, ${row}.upstream, ${row}.outcome,
    coalesce(${row}.tag, ''), ${sign}1, ${sign}coalesce(${row}.input_tokens, 0), ${sign}coalesce(${row}.cached_input_tokens, 0),
    ${sign}coalesce(${row}.cache_write_tokens, 0), ${sign}coalesce(${row}.output_tokens, 0),
    ${sign}coalesce(${row}.reasoning_tokens, 0), ${sign}${row}.charge)
  ON CONFLICT (hour, key_id, model, upstream, outcome, tag) DO UPDATE SET requests = counted.requests + excluded.requests,
    input_tokens = counted.input_tokens + excluded.input_tokens,
    cached_input_tokens = counted.cached_input_tokens + excluded.cached_input_tokens,
    cache_write_tokens = counted.cache_write_tokens + excluded.cache_write_tokens,
    output_tokens = counted.output_tokens + excluded.output_tokens,
    reasoning_tokens = counted.reasoning_tokens + excluded.reasoning_tokens,
    charge = counted.charge + excluded.charge;
  UPDATE usage_periods SET state = 'stale'
  WHERE period = 'day' AND start = ${row}.created_at / 86400000 * 86400000 AND state <> 'stale';`;

/**
 * Running sums of usage, which triggers keep: whatever writes a record, also a node of an earlier version, is counted in the
 * same transaction. A record that is removed stays counted. A tag is never empty: an empty one stands for none, as a primary
 * key has no nulls.
 */
export const usage: Migration = {
  number: 7,
  name: 'tags of requests, and running sums of usage',
  statements: [
    `ALTER TABLE api_keys ADD COLUMN tags TEXT`,
    `ALTER TABLE open_requests ADD COLUMN tag TEXT`,
    `ALTER TABLE records ADD COLUMN tag TEXT`,
    // The sums of the running hour change all the time: with room on its page a row needs no new entry of the index.
    `CREATE TABLE usage_hours (
       hour BIGINT NOT NULL,
       ${dimensions},
       ${sums},
       PRIMARY KEY (hour, key_id, model, upstream, outcome, tag)
     ) WITH (fillfactor = 80)`,
    // Sums of the hours of days and months. In the place of a dimension over which is summed is an empty text.
    `CREATE TABLE usage_rollups (
       kind TEXT COLLATE "C" NOT NULL,
       start BIGINT NOT NULL,
       ${dimensions},
       ${sums},
       PRIMARY KEY (kind, start, key_id, model, upstream, outcome, tag)
     ) WITH (fillfactor = 80)`,
    // Which days and months are rolled up; the sums of any other one are those of its hours.
    `CREATE TABLE usage_periods (
       period TEXT COLLATE "C" NOT NULL CHECK (period IN ('day', 'month')),
       start BIGINT NOT NULL,
       state TEXT COLLATE "C" NOT NULL CHECK (state IN ('stale', 'rolling', 'rolled')),
       barrier BIGINT,
       next_hour BIGINT NOT NULL,
       PRIMARY KEY (period, start)
     )`,
    `INSERT INTO usage_hours (${columns})
     SELECT created_at / 3600000 * 3600000 AS hour, key_id, model, upstream, outcome, '', count(*),
       coalesce(sum(input_tokens), 0), coalesce(sum(cached_input_tokens), 0), coalesce(sum(cache_write_tokens), 0),
       coalesce(sum(output_tokens), 0), coalesce(sum(reasoning_tokens), 0), sum(charge)
     FROM records GROUP BY 1, key_id, model, upstream, outcome`,
    // What was charged and has no record any more is usage of the first hour of 1970.
    `INSERT INTO usage_hours (${columns})
     SELECT 0, accounts.key_id, '', '', '', '', 0, 0, 0, 0, 0, 0, spent - coalesce(charged, 0) FROM accounts
     LEFT JOIN (SELECT key_id, sum(charge) AS charged FROM records GROUP BY key_id) AS counted
       ON counted.key_id = accounts.key_id
     WHERE spent > coalesce(charged, 0)`,
    // A transaction with a number below the oldest one has ended, and what begins later sees what it did.
    `CREATE FUNCTION transaction_number() RETURNS BIGINT LANGUAGE sql VOLATILE AS
       $$ SELECT CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT) $$`,
    `CREATE FUNCTION oldest_transaction() RETURNS BIGINT LANGUAGE sql VOLATILE AS
       $$ SELECT CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS TEXT) AS BIGINT) $$`,
    `CREATE FUNCTION count_usage() RETURNS trigger LANGUAGE plpgsql AS
       $$ BEGIN
         IF TG_OP = 'UPDATE' THEN ${count('OLD', '-')} END IF;
         ${count('NEW', '')}
         RETURN NULL;
       END $$`,
    `CREATE TRIGGER usage_of_records AFTER INSERT OR UPDATE ON records FOR EACH ROW EXECUTE FUNCTION count_usage()`,
  ],
  runsWith: 6,
};

import type { Migration } from '../migration.ts';

const dimensions = `key_id TEXT NOT NULL,
       model TEXT NOT NULL,
       upstream TEXT NOT NULL,
       outcome TEXT NOT NULL,
       tag TEXT NOT NULL`;

const sums = `requests BIGINT NOT NULL,
       input_tokens BIGINT NOT NULL,
       cached_input_tokens BIGINT NOT NULL,
       cache_write_tokens BIGINT NOT NULL,
       output_tokens BIGINT NOT NULL,
       reasoning_tokens BIGINT NOT NULL,
       charge BIGINT NOT NULL`;

const columns = `hour, key_id, model, upstream, outcome, tag, requests, input_tokens, cached_input_tokens,
  cache_write_tokens, output_tokens, reasoning_tokens, charge`;

/** Adds a record to the sums of its hour, or takes it off them, and marks its day if that is rolled up. */
const count = (row: 'NEW' | 'OLD', sign: '' | '-'): string => `
  INSERT INTO usage_hours (${columns})
  VALUES (${row}.created_at / 3600000 * 3600000, ${row}.key_id, ${row}.model, ${row}.upstream, coalesce(${row}.outcome, ''),
    coalesce(${row}.tag, ''), ${sign}1, ${sign}coalesce(${row}.input_tokens, 0), ${sign}coalesce(${row}.cached_input_tokens, 0),
    ${sign}coalesce(${row}.cache_write_tokens, 0), ${sign}coalesce(${row}.output_tokens, 0),
    ${sign}coalesce(${row}.reasoning_tokens, 0), ${sign}${row}.charge)
  ON CONFLICT (hour, key_id, model, upstream, outcome, tag) DO UPDATE SET requests = requests + excluded.requests,
    input_tokens = input_tokens + excluded.input_tokens,
    cached_input_tokens = cached_input_tokens + excluded.cached_input_tokens,
    cache_write_tokens = cache_write_tokens + excluded.cache_write_tokens,
    output_tokens = output_tokens + excluded.output_tokens,
    reasoning_tokens = reasoning_tokens + excluded.reasoning_tokens,
    charge = charge + excluded.charge;
  UPDATE usage_periods SET state = 'stale'
  WHERE period = 'day' AND start = ${row}.created_at / 86400000 * 86400000 AND state <> 'stale';`;

/**
 * Running sums of usage, which triggers keep: whatever writes a record is counted in the same transaction. A record that is
 * removed stays counted. A tag is never empty: an empty one stands for none, as a primary key has no nulls.
 */
export const usageStep: Migration = {
  number: 16,
  name: 'tags of requests, and running sums of usage',
  statements: [
    `ALTER TABLE api_keys ADD COLUMN tags TEXT`,
    `ALTER TABLE open_requests ADD COLUMN tag TEXT`,
    `ALTER TABLE records ADD COLUMN tag TEXT`,
    `CREATE TABLE usage_hours (
       hour BIGINT NOT NULL,
       ${dimensions},
       ${sums},
       PRIMARY KEY (hour, key_id, model, upstream, outcome, tag)
     ) WITHOUT ROWID`,
    // Sums of the hours of days and months. In the place of a dimension over which is summed is an empty text.
    `CREATE TABLE usage_rollups (
       kind TEXT NOT NULL,
       start BIGINT NOT NULL,
       ${dimensions},
       ${sums},
       PRIMARY KEY (kind, start, key_id, model, upstream, outcome, tag)
     ) WITHOUT ROWID`,
    // Which days and months are rolled up; the sums of any other one are those of its hours.
    `CREATE TABLE usage_periods (
       period TEXT NOT NULL CHECK (period IN ('day', 'month')),
       start BIGINT NOT NULL,
       state TEXT NOT NULL CHECK (state IN ('stale', 'rolling', 'rolled')),
       barrier BIGINT,
       next_hour BIGINT NOT NULL,
       PRIMARY KEY (period, start)
     ) WITHOUT ROWID`,
    `INSERT INTO usage_hours (${columns})
     SELECT created_at / 3600000 * 3600000 AS hour, key_id, model, upstream, coalesce(outcome, ''), '', count(*),
       coalesce(sum(input_tokens), 0), coalesce(sum(cached_input_tokens), 0), coalesce(sum(cache_write_tokens), 0),
       coalesce(sum(output_tokens), 0), coalesce(sum(reasoning_tokens), 0), sum(charge)
     FROM records GROUP BY 1, key_id, model, upstream, 5`,
    // What was charged and has no record any more is usage of the first hour of 1970.
    `INSERT INTO usage_hours (${columns})
     SELECT 0, accounts.key_id, '', '', '', '', 0, 0, 0, 0, 0, 0, spent - coalesce(charged, 0) FROM accounts
     LEFT JOIN (SELECT key_id, sum(charge) AS charged FROM records GROUP BY key_id) AS counted
       ON counted.key_id = accounts.key_id
     WHERE spent > coalesce(charged, 0)`,
    `CREATE TRIGGER usage_of_new_record AFTER INSERT ON records BEGIN ${count('NEW', '')} END`,
    `CREATE TRIGGER usage_of_changed_record AFTER UPDATE ON records BEGIN ${count('OLD', '-')} ${count('NEW', '')} END`,
  ],
};

import { byKey, filled, id, sql } from './parts.ts';

/** What tells the sums of usage apart, beside their time: none is NULL, and an empty text stands for none. */
const dimensions = sql`
  key_id ${id} NOT NULL, group_name ${id} NOT NULL, model ${id} NOT NULL,
  upstream ${id} NOT NULL, outcome ${id} NOT NULL, tag ${id} NOT NULL`;
const dimensionNames = 'key_id, group_name, model, upstream, outcome, tag';

/** Not taken from what the queries add up: a step of the schema must not change with the code. */
const sumNames = [
  'requests',
  'input_tokens',
  'cached_input_tokens',
  'cache_write_tokens',
  'output_tokens',
  'reasoning_tokens',
  'charge',
];
const sums = sumNames.map((name) => `${name} BIGINT NOT NULL`).join(',\n  ');

/** Running sums of usage, which triggers on the records keep, and other counts of keys. */
export const usage = sql`
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
`;

/** Adds a record to the sums of its hour, or takes it off them, and marks its day if that is rolled up: for a trigger. */
export function countRecord(row: 'NEW' | 'OLD', sign: '' | '-'): string {
  return `
  INSERT INTO usage_hours (hour, ${dimensionNames}, ${sumNames.join(', ')})
  VALUES (${row}.created_at / 3600000 * 3600000, ${row}.key_id, coalesce(${row}.group_name, ''), ${row}.model, ${row}.upstream,
    ${row}.outcome, coalesce(${row}.tag, ''), ${sign}1, ${sign}coalesce(${row}.input_tokens, 0),
    ${sign}coalesce(${row}.cached_input_tokens, 0), ${sign}coalesce(${row}.cache_write_tokens, 0),
    ${sign}coalesce(${row}.output_tokens, 0), ${sign}coalesce(${row}.reasoning_tokens, 0), ${sign}${row}.charge)
  ON CONFLICT (hour, ${dimensionNames}) DO UPDATE SET
    ${sumNames.map((name) => `${name} = usage_hours.${name} + excluded.${name}`).join(', ')};
  UPDATE usage_periods SET state = 'stale'
  WHERE period = 'day' AND start = ${row}.created_at / 86400000 * 86400000 AND state <> 'stale';`;
}

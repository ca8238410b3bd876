import { byKey, filled, id, postgres, sql } from './parts.ts';
import type { Part } from './parts.ts';

/** What tells the rows of usage apart, beside their time. None is NULL, as they are a primary key: an empty text is for none. */
const dimensions = ['key_id', 'group_name', 'model', 'upstream', 'outcome', 'tag'];

const sums = [
  'requests',
  'input_tokens',
  'cached_input_tokens',
  'cache_write_tokens',
  'output_tokens',
  'reasoning_tokens',
  'charge',
];

/** Columns that are times, or texts. */
function typed(columns: readonly string[], engine: 'sqlite' | 'postgres'): string {
  const typeOf = (column: string): string =>
    column === 'hour' || column === 'start' ? 'BIGINT' : id(engine);
  return columns.map((column) => `${column} ${typeOf(column)} NOT NULL`).join(',\n  ');
}

function tableOf(name: string, ...places: readonly string[]): Part {
  const grouped = [...places, ...dimensions];
  const first: Part = (engine) =>
    typed(
      grouped.filter((column) => engine === 'sqlite' || column !== 'group_name'),
      engine,
    );
  return sql`
CREATE TABLE ${name} (
  ${first},
  ${sums.map((column) => `${column} BIGINT NOT NULL`).join(',\n  ')}${postgres(`, group_name ${id('postgres')} NOT NULL DEFAULT ''`)},
  PRIMARY KEY (${grouped.join(', ')})
)${byKey}${filled(80)};`;
}

/** Running sums of usage, which triggers on the records keep, and other counts of keys. */
export const usage = sql`
-- The sums of each hour. A record that is removed stays counted.
${tableOf('usage_hours', 'hour')}

-- Sums of the hours of days and months. A dimension that its kind does not have is an empty text.
${tableOf('usage_rollups', 'kind', 'start')}

-- Which days and months are rolled up; the sums of any other one are those of its hours.
CREATE TABLE usage_periods (
  period ${id} NOT NULL CHECK (period IN ('day', 'month')),
  start BIGINT NOT NULL,
  state ${id} NOT NULL CHECK (state IN ('stale', 'rolling', 'rolled')),
  barrier BIGINT, -- the number of a transaction: those before it may not have seen that the day was begun
  next_hour BIGINT NOT NULL, -- how far it is rolled up
  PRIMARY KEY (period, start)
)${byKey};

-- The tokens that keys used, in slices of the windows of their limits.
CREATE TABLE token_use (
  key_id ${id} NOT NULL,
  length_ms BIGINT NOT NULL,
  slice_at BIGINT NOT NULL,
  tokens BIGINT NOT NULL,
  PRIMARY KEY (key_id, length_ms, slice_at)
)${byKey}${filled(50)};

-- The requests that a limit of a key has refused on a day.
CREATE TABLE refusals (
  day BIGINT NOT NULL,
  key_id ${id} NOT NULL,
  limit_name ${id} NOT NULL,
  requests BIGINT NOT NULL,
  PRIMARY KEY (day, key_id, limit_name)
)${byKey}${filled(80)};
`;

/** Adds a record to the sums of its hour, or takes it off them, and marks its day if that is rolled up. */
export function countRecord(row: 'NEW' | 'OLD', sign: '' | '-', engine: 'sqlite' | 'pg'): string {
  const [as, of] = engine === 'pg' ? [' AS counted', 'counted.'] : ['', ''];
  const outcome = engine === 'pg' ? `${row}.outcome` : `coalesce(${row}.outcome, '')`;
  return `
  INSERT INTO usage_hours${as} (hour, ${[...dimensions, ...sums].join(', ')})
  VALUES (${row}.created_at / 3600000 * 3600000, ${row}.key_id, coalesce(${row}.group_name, ''), ${row}.model, ${row}.upstream,
    ${outcome}, coalesce(${row}.tag, ''), ${sign}1, ${sign}coalesce(${row}.input_tokens, 0),
    ${sign}coalesce(${row}.cached_input_tokens, 0), ${sign}coalesce(${row}.cache_write_tokens, 0),
    ${sign}coalesce(${row}.output_tokens, 0), ${sign}coalesce(${row}.reasoning_tokens, 0), ${sign}${row}.charge)
  ON CONFLICT (hour, ${dimensions.join(', ')}) DO UPDATE SET
    ${sums.map((name) => `${name} = ${of}${name} + excluded.${name}`).join(', ')};
  UPDATE usage_periods SET state = 'stale'
  WHERE period = 'day' AND start = ${row}.created_at / 86400000 * 86400000 AND state <> 'stale';`;
}

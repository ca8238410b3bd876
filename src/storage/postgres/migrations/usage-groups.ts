import type { Migration } from '../../migration.ts';

const sums = [
  'requests',
  'input_tokens',
  'cached_input_tokens',
  'cache_write_tokens',
  'output_tokens',
  'reasoning_tokens',
  'charge',
];

const dimensions = 'key_id, group_name, model, upstream, outcome, tag';

/** Gives a table of sums a column for the group, which tells its rows apart. */
const withGroup = (table: string, places: string): readonly string[] => [
  `ALTER TABLE ${table} ADD COLUMN group_name TEXT COLLATE "C" NOT NULL DEFAULT ''`,
  `ALTER TABLE ${table} DROP CONSTRAINT ${table}_pkey, ADD PRIMARY KEY (${places}, ${dimensions})`,
];

/** Adds a record to the sums of its hour, or takes it off them, and marks its day, as before; with its group. */
const count = (row: 'NEW' | 'OLD', sign: '' | '-'): string => `
  INSERT INTO usage_hours AS counted (hour, ${dimensions}, ${sums.join(', ')})
  VALUES (${row}.created_at / 3600000 * 3600000, ${row}.key_id, coalesce(${row}.group_name, ''), ${row}.model, ${row}.upstream,
    ${row}.outcome, coalesce(${row}.tag, ''), ${sign}1, ${sign}coalesce(${row}.input_tokens, 0),
    ${sign}coalesce(${row}.cached_input_tokens, 0), ${sign}coalesce(${row}.cache_write_tokens, 0),
    ${sign}coalesce(${row}.output_tokens, 0), ${sign}coalesce(${row}.reasoning_tokens, 0), ${sign}${row}.charge)
  ON CONFLICT (hour, ${dimensions}) DO UPDATE SET
    ${sums.map((name) => `${name} = counted.${name} + excluded.${name}`).join(', ')};
  UPDATE usage_periods SET state = 'stale'
  WHERE period = 'day' AND start = ${row}.created_at / 86400000 * 86400000 AND state <> 'stale';`;

/**
 * The group of each request, and sums of usage by it. What was counted before has no group, nor has what an earlier version
 * settles. It can't roll usage up beside this one, which a node of this version does then; sums that are rolled up have the
 * names that it knows.
 */
export const usageGroups: Migration = {
  number: 16,
  runsWith: 6,
  name: 'usage by groups of keys',
  statements: [
    `ALTER TABLE open_requests ADD COLUMN group_name TEXT`,
    `ALTER TABLE records ADD COLUMN group_name TEXT`,
    ...withGroup('usage_hours', 'hour'),
    ...withGroup('usage_rollups', 'kind, start'),
    `CREATE OR REPLACE FUNCTION count_usage() RETURNS trigger LANGUAGE plpgsql AS
       $$ BEGIN
         IF TG_OP = 'UPDATE' THEN ${count('OLD', '-')} END IF;
         ${count('NEW', '')}
         RETURN NULL;
       END $$`,
  ],
};

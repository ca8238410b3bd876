import type { Migration } from '../migration.ts';

const sums = [
  'requests',
  'input_tokens',
  'cached_input_tokens',
  'cache_write_tokens',
  'output_tokens',
  'reasoning_tokens',
  'charge',
];

const dimensions = ['key_id', 'group_name', 'model', 'upstream', 'outcome', 'tag'];

/** Makes a table of sums anew with a column for the group, since the primary key of such a table can't be changed. */
const withGroup = (
  table: string,
  places: readonly (readonly [name: string, type: string])[],
): readonly string[] => {
  const names = [...places.map(([name]) => name), ...dimensions];
  const kept = [...names, ...sums].map((name) => (name === 'group_name' ? `''` : name));
  return [
    `CREATE TABLE ${table}_by_group (
       ${places.map(([name, type]) => `${name} ${type} NOT NULL`).join(', ')},
       ${dimensions.map((name) => `${name} TEXT NOT NULL`).join(', ')},
       ${sums.map((name) => `${name} BIGINT NOT NULL`).join(', ')},
       PRIMARY KEY (${names.join(', ')})
     ) WITHOUT ROWID`,
    `INSERT INTO ${table}_by_group (${[...names, ...sums].join(', ')}) SELECT ${kept.join(', ')} FROM ${table}`,
    `DROP TABLE ${table}`,
    `ALTER TABLE ${table}_by_group RENAME TO ${table}`,
  ];
};

/** Adds a record to the sums of its hour, or takes it off them, and marks its day if that is rolled up. */
const count = (row: 'NEW' | 'OLD', sign: '' | '-'): string => `
  INSERT INTO usage_hours (hour, ${[...dimensions, ...sums].join(', ')})
  VALUES (${row}.created_at / 3600000 * 3600000, ${row}.key_id, coalesce(${row}.group_name, ''), ${row}.model, ${row}.upstream,
    coalesce(${row}.outcome, ''), coalesce(${row}.tag, ''), ${sign}1, ${sign}coalesce(${row}.input_tokens, 0),
    ${sign}coalesce(${row}.cached_input_tokens, 0), ${sign}coalesce(${row}.cache_write_tokens, 0),
    ${sign}coalesce(${row}.output_tokens, 0), ${sign}coalesce(${row}.reasoning_tokens, 0), ${sign}${row}.charge)
  ON CONFLICT (hour, ${dimensions.join(', ')}) DO UPDATE SET
    ${sums.map((name) => `${name} = ${name} + excluded.${name}`).join(', ')};
  UPDATE usage_periods SET state = 'stale'
  WHERE period = 'day' AND start = ${row}.created_at / 86400000 * 86400000 AND state <> 'stale';`;

/** The group of each request, and sums of usage by it. What was counted before has no group. */
export const usageGroupsStep: Migration = {
  number: 24,
  name: 'usage by groups of keys',
  statements: [
    `ALTER TABLE open_requests ADD COLUMN group_name TEXT`,
    `ALTER TABLE records ADD COLUMN group_name TEXT`,
    `DROP TRIGGER usage_of_new_record`,
    `DROP TRIGGER usage_of_changed_record`,
    ...withGroup('usage_hours', [['hour', 'BIGINT']]),
    ...withGroup('usage_rollups', [
      ['kind', 'TEXT'],
      ['start', 'BIGINT'],
    ]),
    `CREATE TRIGGER usage_of_new_record AFTER INSERT ON records BEGIN ${count('NEW', '')} END`,
    `CREATE TRIGGER usage_of_changed_record AFTER UPDATE ON records BEGIN ${count('OLD', '-')} ${count('NEW', '')} END`,
  ],
};

import type { Statement } from '../engine.ts';

/** The columns of declared keys that say which name has which secret. */
export const secretColumns = { name: 'TEXT', hash: 'TEXT' };

/** The columns of all that is stored of a declared key beside them. */
export const settingColumns = {
  id: 'TEXT',
  spare_id: 'TEXT',
  concurrency: 'INTEGER',
  requests_per_minute: 'INTEGER',
  queue_wait_ms: 'INTEGER',
  tokens_per_minute: 'INTEGER',
  tokens_per_day: 'INTEGER',
  models: 'TEXT',
  allow_from: 'TEXT',
  tags: 'TEXT',
  expires_at: 'BIGINT',
  low_balance: 'BIGINT',
  compatibility: 'TEXT',
  budget: 'TEXT',
  group_name: 'TEXT',
  weight: 'INTEGER',
};

/**
 * Begins a statement that reads declared keys as the table `wanted`: its first value is the text of `rowsOf`. All of them
 * are one value: with a statement for each, a thousand keys would take seconds, in which no other unit is run on any node,
 * and with a value for each column there is a limit of values.
 */
export function declareTable(columns: Readonly<Record<string, string>>): string {
  const read = Object.entries(columns).map(
    ([name, type], at) => `CAST(value ->> ${at} AS ${type}) AS ${name}`,
  );
  return `WITH wanted AS MATERIALIZED (SELECT ${read.join(', ')} FROM json_each(?))`;
}

/** The text of such a table, from rows in the order of its columns. PostgreSQL reads each value of an object, not of a list. */
export function rowsOf(rows: readonly Statement['values'][]): string {
  return JSON.stringify(Object.fromEntries(rows.entries()));
}

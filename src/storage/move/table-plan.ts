/** The types of columns that can be copied, as `information_schema` writes them. */
const columnTypes = ['text', 'bigint', 'integer', 'bytea'] as const;

export type ColumnType = (typeof columnTypes)[number];

/** A column that both databases have, with its type and rules in the target. */
export interface CopiedColumn {
  readonly name: string;
  readonly type: ColumnType;
  readonly isNullable: boolean;
}

/** A column of the target, as it describes itself. */
export interface TargetColumn {
  readonly name: string;
  readonly type: string;
  readonly isNullable: boolean;
  /** Whether a row may leave it out. */
  readonly hasDefault: boolean;
}

/** What is copied of one table. */
export interface TablePlan {
  readonly table: string;
  readonly columns: readonly CopiedColumn[];
}

/** Throws when the source has a table that is neither copied nor left out on purpose: its rows would be lost unnoticed. */
export function checkTables(found: readonly string[]): void {
  const unknown = found.filter(
    (table) =>
      !copiedTables.some((known) => known === table) &&
      !tablesLeftOut.has(table) &&
      // Of SQLite itself, as those of its statistics.
      !table.startsWith('sqlite_'),
  );
  if (unknown.length > 0)
    throw new Error(`tables that this version can't move: ${unknown.join(', ')}; nothing was copied`);
}

/** Matches the columns of a table by their names. Throws when one has no counterpart: its values would be lost unnoticed. */
export function planTable(
  table: string,
  source: readonly string[],
  target: readonly TargetColumn[],
): TablePlan {
  const columns = source.map((name) => {
    const counterpart = target.find((column) => column.name === name);
    if (counterpart === undefined) throw new Error(`${table}.${name} has no counterpart in PostgreSQL`);
    const type = columnTypes.find((known) => known === counterpart.type);
    if (type === undefined)
      throw new Error(`${table}.${name} has the type ${counterpart.type}, which can't be copied`);
    return { name, type, isNullable: counterpart.isNullable };
  });
  for (const { name, isNullable, hasDefault } of target)
    if (!source.includes(name) && !isNullable && !hasDefault)
      throw new Error(`${table}.${name} has no counterpart in SQLite, and needs a value`);
  return { table, columns };
}

/**
 * The tables that are copied when a database moves to another engine, each behind those that its rows refer to. The columns
 * are those that both databases have.
 */
export const copiedTables = [
  'api_keys',
  'old_secrets',
  'accounts',
  'record_kinds',
  'record_rows',
  'ledger_rows',
  'ledger_seals',
  'ledger_heads',
  'ledger_roots',
  'statement_keys',
  'ledger_folds',
  'folded_credits',
  'record_removals',
  'claim_rows',
  // Before the lines, which are counted in it.
  'audit_chain',
  'audit_lines',
  'audited_config',
  // Before the settings of events: levels that budgets have reached are no news to the target.
  'budgets',
  'event_settings',
  'outbox',
  'webhook_deliveries',
  'upstream_outages',
  'usage_hours',
  'token_use',
  'refusals',
  'history_intervals',
] as const;

/** Tables of the source that are not copied, and why. */
const tablesLeftOut: ReadonlyMap<string, string> = new Map([
  ['migrations', 'each engine has steps of its own'],
  ['owners', 'leases of processes that have ended'],
  ['open_rows', 'it is empty: every open request was settled or closed before'],
  ['upstream_outage_nodes', 'what processes that have ended saw of upstreams'],
  ['usage_rollups', 'they are sums of the hours, and made again'],
  ['usage_periods', 'it says what is rolled up: nothing is, after the move'],
  ['ledger_root_work', 'a count by which processes notice each other while they make a root'],
  ['moved_to', 'the mark of an earlier copy, which is of the file alone'],
]);

/** What a column amounts to: how many values it has, and the sum of its integers, or of the bytes of its texts and bytes. */
interface ColumnSum {
  readonly values: bigint;
  readonly sum: bigint;
}

/** What a table amounts to, by which both sides are compared. */
export interface TableSums {
  readonly rows: bigint;
  readonly columns: ReadonlyMap<string, ColumnSum>;
}

/** Throws when the two sides differ: something was lost or changed on the way. */
export function compareSums({ table, columns }: TablePlan, source: TableSums, target: TableSums): void {
  if (source.rows !== target.rows)
    throw new Error(`${table} has ${source.rows} rows in SQLite, but ${target.rows} in PostgreSQL`);
  for (const { name } of columns) {
    const [from, to] = [source.columns.get(name), target.columns.get(name)];
    if (from === undefined || to === undefined || from.values !== to.values || from.sum !== to.sum)
      throw new Error(
        `${table}.${name} differs: ${describe(from)} in SQLite, but ${describe(to)} in PostgreSQL`,
      );
  }
}

function describe(found: ColumnSum | undefined): string {
  return found === undefined ? 'nothing' : `${found.values} values with the sum ${found.sum}`;
}

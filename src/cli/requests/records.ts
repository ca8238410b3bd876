import type { PresentedRecord } from '../../http/present/record.ts';
import { readCsv, readList } from '../admin-client.ts';
import { keyNames } from '../keys/find-key.ts';
import { withOptionNames } from '../keys/key-options.ts';
import { writeTable, writeTime } from '../output.ts';
import { filterQuery } from './filter-options.ts';
import type { FilterOptions } from './filter-options.ts';
import { requireNames } from './usage.ts';

/** The options of `records`, as commander names them. */
export interface RecordOptions extends FilterOptions {
  readonly limit?: number;
  readonly csv?: true;
  readonly json?: true;
}

/** How many rows a table on a terminal has without `--limit`. */
const terminalRows = 20;

/**
 * Lists records, as a table, JSON or CSV. A table on a terminal is short unless `--limit` is given; everything else is
 * complete. Throws if there are none, and no request has a name that was asked for.
 */
export async function listRecords({ csv, json, limit, ...filter }: RecordOptions): Promise<string> {
  const query = await filterQuery(filter);
  if (csv) return withOptionNames(() => readCsv('/admin/records', query, limit ?? Infinity));
  const isShort = limit === undefined && !json && process.stdout.isTTY;
  // One more than is printed shows whether there are older ones.
  const most = isShort ? terminalRows + 1 : (limit ?? Infinity);
  const records = await withOptionNames(() => readList<PresentedRecord>('/admin/records', query, most));
  if (records.length === 0) await requireNames(filter);
  if (json) return JSON.stringify(records);
  if (records.length === 0) return 'no records';
  const names = await keyNames(records.map(({ key_id: id }) => id));
  if (!isShort || records.length <= terminalRows) return tableOf(records, names);
  return `${tableOf(records.slice(0, terminalRows), names)}\nolder records: --limit ${terminalRows * 5}, or all with --csv or --json`;
}

/** How much of the end of a request's id is printed, as in the log on a terminal: `textgate show` finds it by that. */
const idColumns = 8;

function tableOf(records: readonly PresentedRecord[], names: ReadonlyMap<string, string>): string {
  return writeTable(
    ['REQUEST', 'KEY', 'CREATED (UTC)', 'MODEL', 'OUTCOME', 'IN', 'OUT', 'CHARGE'],
    records.map(({ usage, ...record }) => [
      record.request_id.slice(-idColumns),
      names.get(record.key_id) ?? record.key_id,
      writeTime(record.created_at),
      record.model,
      record.outcome ?? 'running',
      String(usage?.input_tokens ?? '-'),
      String(usage?.output_tokens ?? '-'),
      record.charge,
    ]),
    { right: ['IN', 'OUT', 'CHARGE'], cut: ['KEY', 'MODEL'] },
  );
}

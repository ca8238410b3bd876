import type { PresentedRecord } from '../../http/present/record.ts';
import { didYouMean } from '../did-you-mean.ts';
import { readCsv, readList } from '../admin-client.ts';
import { findKeyId, keyNames } from '../keys/find-key.ts';
import { writeTable, writeTime } from '../output.ts';

/** The options of `records`, as commander names them. */
export interface RecordOptions {
  readonly key?: string;
  readonly model?: string;
  readonly from?: string;
  readonly to?: string;
  readonly limit?: number;
  readonly csv?: true;
  readonly json?: true;
}

/** How many rows a table on a terminal has without `--limit`. */
const terminalRows = 20;

/** In how many of the newest records the nearest name of an unknown model is searched. */
const maxSearchedRecords = 1_000;

/**
 * Lists records, as a table, JSON or CSV. A table on a terminal is short unless `--limit` is given; everything else is
 * complete. Throws if no record has the model.
 */
export async function listRecords({ csv, json, limit, key, ...filter }: RecordOptions): Promise<string> {
  const keyId = key === undefined ? {} : { key: await findKeyId(key) };
  const query = new URLSearchParams({ ...filter, ...keyId }).toString();
  if (filter.model !== undefined) await requireModel(filter.model);
  if (csv) return readCsv('/admin/records', query, limit ?? Infinity);
  const isShort = limit === undefined && !json && process.stdout.isTTY;
  // One more than is printed shows whether there are older ones.
  const most = isShort ? terminalRows + 1 : (limit ?? Infinity);
  const records = await readList<PresentedRecord>('/admin/records', query, most);
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

/** An empty list would hide a misspelt name. */
async function requireModel(model: string): Promise<void> {
  const [found] = await readList('/admin/records', new URLSearchParams({ model }).toString(), 1);
  if (found !== undefined) return;
  const recent = await readList<PresentedRecord>('/admin/records', '', maxSearchedRecords);
  const known = [...new Set(recent.map((record) => record.model))];
  throw new Error(`no record has the model ${model}${didYouMean(model, known)}`);
}

import { json as readJson } from 'node:stream/consumers';
import type { Command } from 'commander';
import { callAdmin, openAdmin, readPages } from './admin-client.ts';
import { report, writeTable } from './output.ts';

/** As much of a record as the table shows. */
interface ShownRecord {
  readonly request_id: string;
  readonly key_id: string;
  readonly created_at: string;
  readonly model: string;
  readonly outcome: string | null;
  readonly usage: { readonly input_tokens: number; readonly output_tokens: number } | null;
  readonly charge: string;
}

interface RecordOptions {
  readonly key?: string;
  readonly model?: string;
  readonly from?: string;
  readonly to?: string;
  readonly limit?: string;
  readonly csv?: true;
  readonly json?: true;
}

/** Adds `textgate records` and `textgate ledger verify`. */
export function addRecordsCommands(program: Command): void {
  program
    .command('records')
    .description('read the consumption record, newest first')
    .option('--key <id>', "one key's only")
    .option('--model <name>', "one model's only")
    .option('--from <time>', 'from a time on, such as 2030-01-01T00:00:00Z')
    .option('--to <time>', 'before a time')
    .option('--limit <n>', 'the newest n only; all of them without it')
    .option('--csv', 'print CSV')
    .option('--json', 'print JSON')
    .action((options: RecordOptions) => report(() => listRecords(options)));
  const ledger = program.command('ledger').description('the books behind the balances');
  ledger
    .command('verify')
    .description('add all balances, holds and charges up again from their rows')
    .option('--json', 'print JSON')
    .action((options: { json?: true }) => report(() => verifyLedger(options)));
}

async function listRecords({ csv, json, limit, ...filter }: RecordOptions): Promise<string> {
  const query = new URLSearchParams(filter).toString();
  const most = limit === undefined ? Number.POSITIVE_INFINITY : Number(limit);
  if (!(most >= 1)) throw new Error('--limit: a whole number from 1 is needed');
  if (csv) return readCsv(query, most);
  const records = (await readPages('/admin/records', query, most)) as ShownRecord[];
  if (json) return JSON.stringify(records);
  return writeTable(
    ['REQUEST', 'KEY', 'CREATED', 'MODEL', 'OUTCOME', 'IN', 'OUT', 'CHARGE'],
    records.map(({ usage, ...record }) => [
      record.request_id,
      record.key_id,
      record.created_at,
      record.model,
      record.outcome ?? 'running',
      String(usage?.input_tokens ?? '-'),
      String(usage?.output_tokens ?? '-'),
      record.charge,
    ]),
  );
}

/** All pages as one file: the head of the first one only. */
async function readCsv(query: string, most: number): Promise<string> {
  let text = '';
  let left = most;
  let before: string | null = null;
  do {
    const cursor: string = before === null ? '' : `&before=${encodeURIComponent(before)}`;
    const page = await callAdmin(
      'GET',
      `/admin/records?limit=${Math.min(200, left)}&${query}${cursor}`,
      undefined,
      'text/csv',
    );
    const { csv, next } = page as { csv: string; next: string | null };
    text += text === '' ? csv : csv.slice(csv.indexOf('\n') + 1);
    before = next;
    left -= 200;
  } while (before !== null && left > 0);
  return text.trimEnd();
}

async function verifyLedger({ json }: { json?: true }): Promise<string> {
  const found = (await readJson(await openAdmin('/admin/ledger'))) as {
    accounts: number;
    records: number;
    faults: readonly string[];
  };
  if (found.faults.length > 0) throw new Error(`the books do not add up:\n${found.faults.join('\n')}`);
  if (json) return JSON.stringify(found);
  return `${found.accounts} accounts and ${found.records} records add up`;
}

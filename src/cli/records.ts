import { json as readJson } from 'node:stream/consumers';
import type { Command } from 'commander';
import { openAdmin, readCsv, readList } from './admin-client.ts';
import { report, writeTable } from './output.ts';

/** The fields of a record that the table prints. */
interface RecordObject {
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
    .description('list consumption records, newest first')
    .option('--key <id>', 'only records of this key')
    .option('--model <name>', 'only records of this model')
    .option('--from <time>', 'only records from this time on, such as 2030-01-01T00:00:00Z')
    .option('--to <time>', 'only records before this time')
    .option('--limit <n>', 'only the newest n records; all by default')
    .option('--csv', 'print CSV')
    .option('--json', 'print JSON')
    .action((options: RecordOptions) => report(() => listRecords(options)));
  const ledger = program.command('ledger').description('check the ledger behind the balances');
  ledger
    .command('verify')
    .description('recompute all balances, holds and charges from their rows, and compare')
    .option('--json', 'print JSON')
    .action((options: { json?: true }) => report(() => verifyLedger(options)));
}

async function listRecords({ csv, json, limit, ...filter }: RecordOptions): Promise<string> {
  const query = new URLSearchParams(filter).toString();
  const most = limit === undefined ? Number.POSITIVE_INFINITY : Number(limit);
  if (!(most >= 1)) throw new Error('--limit: expected a whole number of 1 or more');
  if (csv) return readCsv('/admin/records', query, most);
  const records = (await readList('/admin/records', query, most)) as RecordObject[];
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

async function verifyLedger({ json }: { json?: true }): Promise<string> {
  const found = (await readJson(await openAdmin('/admin/ledger'))) as {
    accounts: number;
    records: number;
    faults: readonly string[];
  };
  if (found.faults.length > 0) throw new Error(`the ledger does not balance:\n${found.faults.join('\n')}`);
  if (json) return JSON.stringify(found);
  return `the ledger balances: ${found.accounts} accounts, ${found.records} records`;
}

import type { Command } from 'commander';
import { report } from '../output.ts';
import type { Json } from '../output.ts';
import type { RecordOptions } from '../records.ts';
import { wholeNumber } from './arguments.ts';

/** Adds `textgate records` and `textgate ledger verify`. */
export function addRecordsCommands(program: Command): void {
  program
    .command('records')
    .description('list consumption records, newest first')
    .option('--key <key>', 'only records of this key: its id, or a name that only one key has')
    .option('--model <name>', 'only records of this model')
    .option('--from <time>', 'only records from this time on, such as 2030-01-01T00:00:00Z')
    .option('--to <time>', 'only records before this time')
    .option(
      '--limit <n>',
      'only the newest n records; the default is 20 on a terminal, and all otherwise',
      wholeNumber,
    )
    .option('--csv', 'print CSV')
    .option('--json', 'print JSON')
    .action((options: RecordOptions) =>
      report(async () => (await import('../records.ts')).listRecords(options)),
    );
  const ledger = program.command('ledger').description('check the ledger behind the balances');
  ledger
    .command('verify')
    .description('recompute all balances, holds and charges from their rows, and compare')
    .option('--json', 'print JSON')
    .action((options: Json) => report(async () => (await import('../ledger.ts')).verifyLedger(options)));
}

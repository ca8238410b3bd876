import type { Command } from 'commander';
import { report } from '../output.ts';
import type { Json } from '../output.ts';
import type { ArchiveOptions } from '../archive/archive-records.ts';
import type { RecordOptions } from '../requests/records.ts';
import { wholeNumber } from './arguments.ts';

const archiveHelp = `
The file is written, synced and read again before anything is removed. After an interruption, run the
same command again: it goes on. Without a file the records are printed, and nothing is removed.

Examples:
  textgate records archive --before 2030-01-01 records-until-2029.jsonl
  textgate records archive --before 2030-01-01 --csv records-until-2029.csv
`;

/** Adds `textgate records`, `textgate records archive` and `textgate ledger verify`. */
export function addRecordsCommands(program: Command): void {
  const records = program
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
      report(async () => (await import('../requests/records.ts')).listRecords(options)),
    );
  records
    .command('archive [file]')
    .description('move old records to a file, and fold their postings in the ledger')
    .option('--before <day>', 'only records from before this day (UTC); default: what records.keep calls old')
    .option('--json', 'write JSON lines, the default')
    .option('--csv', 'write CSV')
    .addHelpText('after', archiveHelp)
    // With those of the command above, which takes options of the same names.
    .action((file: string | undefined, _own: ArchiveOptions, command: Command) =>
      report(async () =>
        (await import('../archive/archive-records.ts')).archiveRecords(
          file,
          command.optsWithGlobals<ArchiveOptions>(),
        ),
      ),
    );
  const ledger = program.command('ledger').description('check the ledger behind the balances');
  ledger
    .command('verify')
    .description('recompute all balances, holds and charges from their rows, and compare')
    .option('--json', 'print JSON')
    .action((options: Json) =>
      report(async () => (await import('../database/ledger.ts')).verifyLedger(options)),
    );
}

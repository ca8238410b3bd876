import { Option } from 'commander';
import type { Command } from 'commander';
import { printing, report } from '../output.ts';
import type { ArchiveOptions } from '../archive/archive-records.ts';
import type { ReconcileOptions } from '../reconcile/reconcile.ts';
import { exitBeforeRun, wholeNumber, listOf } from './arguments.ts';
import { optionOf } from './key-settings.ts';

const archiveHelp = `
The file is written, synced and read again before anything is removed. After an interruption, run the
same command again: it goes on. Without a file the records are printed, and nothing is removed.

Examples:
  textgate records archive --before 2030-01-01 records-until-2029.jsonl
  textgate records archive --before 2030-01-01 --csv records-until-2029.csv
`;

const recordsHelp = `
Examples:
  textgate records --outcome upstream_failed --from 2030-01-01T15:00:00Z --to 2030-01-01T15:10:00Z
  textgate records --cause "connection refused" --upstream local
  textgate records --key bob --min-duration 30s --min-amount 0.05
`;

/** The options by which records are chosen. */
// oxfmt-ignore
const filterOptions: readonly Parameters<typeof optionOf>[0][] = [
  { flags: '--key <key>', help: 'only records of this key: its id, or a name that only one key has' },
  { flags: '--group <name>', help: 'only records of keys that were in this group; `` for those in none' },
  { flags: '--model <name>', help: 'only records of this model' },
  { flags: '--upstream <name>', help: 'only records of requests that this upstream answered or failed' },
  { flags: '--outcome <name>', help: 'only records of requests that ended so, such as completed' },
  { flags: '--status <code>', help: 'only records of requests whose clients got this HTTP status' },
  { flags: '--cause <text>', help: "only failures with this text in a cause, a code or the provider's words" },
  { flags: '--tag <name>', help: 'only records with this tag; `` for those without one' },
  { flags: '--min-duration <time>', help: 'only records of requests that took so long, such as 30s' },
  { flags: '--max-duration <time>', help: 'only records of requests that took no longer' },
  { flags: '--min-amount <usd>', help: 'only records with a charge of so much or more' },
  { flags: '--from <time>', help: 'only records from this time on, such as 2030-01-01T00:00:00Z' },
  { flags: '--to <time>', help: 'only records before this time' },
];

/** Adds `textgate records` and `textgate records archive`. */
export function addRecordsCommands(program: Command): void {
  const records = program
    .command('records')
    .description('list consumption records, newest first')
    .addHelpText('after', recordsHelp);
  for (const option of filterOptions) records.addOption(optionOf(option));
  records
    .option(
      '--limit <n>',
      'only the newest n records; the default is 20 on a terminal, and all otherwise',
      wholeNumber,
    )
    .option('--csv', 'print CSV')
    .option('--json', 'print JSON')
    .action(printing(async () => (await import('../requests/records.ts')).listRecords));
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
}

/** Adds `textgate ledger verify`. */
export function addLedgerCommand(program: Command): void {
  const ledger = program.command('ledger').description('check the ledger behind the balances');
  ledger
    .command('verify')
    .description('recompute all balances, holds and charges from their rows, and compare')
    .option('--json', 'print JSON')
    .action(printing(async () => (await import('../database/ledger.ts')).verifyLedger));
}

const reconcileHelp = `
The file is a usage export of the provider, CSV or JSON, by day and model or finer; its format is
recognized by its fields. Requests and tokens are compared, and costs are shown beside.

Examples:
  textgate reconcile --upstream openai usage.json
  textgate reconcile --upstream claude --from 2030-01-01 --to 2030-02-01 january.csv
  textgate reconcile --upstream openai --map gpt-5-2025-08-07=gpt-5 --tolerance 0.5% usage.csv

Exit codes: 0 if both sides agree within the tolerance, 1 if not, 2 for wrong usage or a file that
can't be read, 3 if the records can't be read.
`;

/** Adds `textgate reconcile`. */
export function addReconcileCommand(program: Command): void {
  program
    .command('reconcile')
    .description("compare a provider's usage export with the records, by day and model")
    .argument('<file>', 'the usage export of the provider')
    .requiredOption('--upstream <name>', 'the upstream of the config that the provider is')
    .addOption(
      new Option('--format <name>', 'the format of the file; default: recognized by its fields').choices([
        'openai',
        'anthropic',
        'openrouter',
        'plain',
      ]),
    )
    .option('--from <day>', 'compare from this day on, such as 2030-01-31; default: the first in the file')
    .option('--to <day>', 'compare the days before this one; default: all in the file')
    .option('--tolerance <share>', 'how much the sides may differ; default: 1%')
    .option('--time-zone <zone>', "the zone of the provider's days; default: UTC")
    .option(
      '--map <theirs=ours>',
      'a model whose name in the file is not that in the config; may be repeated',
      (pair: string, pairs: readonly string[] | undefined) => [...(pairs ?? []), pair],
    )
    .option('--json', 'print JSON, with the lines that agree, too')
    .addHelpText('after', reconcileHelp)
    .exitOverride(exitBeforeRun)
    .action(async (file: string, options: ReconcileOptions) =>
      (await import('../reconcile/reconcile.ts')).reconcile(file, options),
    );
}

const usageHelp = `
Groups: hour, day or month; key, group, model, upstream, outcome, tag.
Times are whole hours in UTC, or days.

Examples:
  textgate usage                                              the last 30 days, by day
  textgate usage --by key --from 2030-01-01 --to 2030-02-01   who used how much in January
  textgate usage --by month,model --from 2030-01-01 --csv
  textgate usage --by model --group team-a --month 2030-01    what a group used in January
`;

/** Adds `textgate usage`. */
export function addUsageCommand(program: Command): void {
  program
    .command('usage')
    .description('add up requests, tokens and charges')
    .option('--by <groups>', 'a row for each of these, such as day,model; `` for one row of all', listOf)
    .option('--from <time>', 'only requests from this time on; default: 30 days ago')
    .option('--to <time>', 'only requests before this time')
    .option('--month <month>', 'only requests of this month, such as 2030-01')
    .option('--key <key>', 'only requests of this key: its id, or a name that only one key has')
    .option('--group <name>', 'only requests of keys that were in this group; `` for those in none')
    .option('--model <name>', 'only requests for this model')
    .option('--upstream <name>', 'only requests that this upstream answered')
    .option('--outcome <name>', 'only requests that ended so, such as completed')
    .option('--tag <name>', 'only requests with this tag; `` for those without one')
    .option('--csv', 'print CSV')
    .option('--json', 'print JSON')
    .addHelpText('after', usageHelp)
    .action(printing(async () => (await import('../requests/usage.ts')).showUsage));
}

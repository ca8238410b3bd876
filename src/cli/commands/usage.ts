import type { Command } from 'commander';
import { report } from '../output.ts';
import type { UsageOptions } from '../requests/usage.ts';
import { listOf } from './arguments.ts';

const help = `
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
    .addHelpText('after', help)
    .action((options: UsageOptions) =>
      report(async () => (await import('../requests/usage.ts')).showUsage(options)),
    );
}

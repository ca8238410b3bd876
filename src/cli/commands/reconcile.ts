import { Option } from 'commander';
import type { Command } from 'commander';
import type { ReconcileOptions } from '../reconcile/reconcile.ts';

const help = `
The file is a usage export of the provider, CSV or JSON, by day and model or finer; its format is
recognized by its fields. Requests and tokens are compared, and costs are shown beside.

Examples:
  textgate reconcile --upstream openai usage.json
  textgate reconcile --upstream claude --from 2030-01-01 --to 2030-02-01 january.csv
  textgate reconcile --upstream openai --map gpt-5-2025-08-07=gpt-5 --tolerance 0.5% usage.csv

Exit codes: 0 if both sides agree within the tolerance, 1 if not, 2 for wrong usage or a file that
can't be read, 3 if the records can't be read.
`;

/** The exit code for wrong usage. */
const wrongUsage = 2;

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
    .addHelpText('after', help)
    .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : wrongUsage))
    .action(async (file: string, options: ReconcileOptions) =>
      (await import('../reconcile/reconcile.ts')).reconcile(file, options),
    );
}

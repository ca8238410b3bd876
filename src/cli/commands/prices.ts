import type { Command } from 'commander';
import { printing, report } from '../output.ts';
import type { Json } from '../output.ts';
import { configFileOf, configOption } from './arguments.ts';

const diffHelp = `
The list is a file such as
https://raw.githubusercontent.com/pydantic/genai-prices/main/prices/new_data/v2/data.json, of which nothing is kept.
With a gateway that runs, what its keys were charged in the last 7 days is compared with what the list would have
charged.
`;

/** Adds `textgate prices`. */
export function addPricesCommand(program: Command): void {
  const prices = program
    .command('prices')
    .description('show the public prices of providers, by the names that a config has for them')
    .argument('[pattern]', 'a part of the names, such as gpt-4o; * stands for any text')
    .option('--json', 'print JSON')
    .action(printing(async () => (await import('../prices/show-prices.ts')).showPrices));
  prices
    .command('diff')
    .description('show what a later list of prices would change for a config and its keys')
    .argument('<list>', 'the file with the later list')
    .option(configOption, 'the config file; default: TEXTGATE_CONFIG')
    .addHelpText('after', diffHelp)
    .action((list: string, options: { readonly config?: string }, command: Command) => {
      const { json } = command.optsWithGlobals<Json>();
      const config = configFileOf(undefined, options, command);
      if (config === undefined)
        return command.error('error: no config file: give it with --config or in TEXTGATE_CONFIG');
      // `findAdminListener` looks there for the gateway that runs.
      process.env['TEXTGATE_CONFIG'] = config;
      return report(async () =>
        (await import('../prices/diff-prices.ts')).diffPrices(list, config, json === true),
      );
    });
}

import type { Command } from 'commander';
import { printing } from '../output.ts';

/** Adds `textgate prices`. */
export function addPricesCommand(program: Command): void {
  program
    .command('prices')
    .description('show the public prices of providers, by the names that a config has for them')
    .argument('[pattern]', 'a part of the names, such as gpt-4o; * stands for any text')
    .option('--json', 'print JSON')
    .action(printing(async () => (await import('../prices.ts')).showPrices));
}

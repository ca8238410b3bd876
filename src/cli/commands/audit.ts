import type { Command } from 'commander';
import { printing } from '../output.ts';
import { wholeNumber } from './arguments.ts';

const help = `
Examples:
  textgate audit --key bob                    who changed bob, and what
  textgate audit --action key.change --from 2030-01-01
  textgate audit --search invoice --csv
`;

/** Adds `textgate audit`. */
export function addAuditCommand(program: Command): void {
  program
    .command('audit')
    .description('list what operators changed, and what was refused, newest first')
    .option('--from <time>', 'only from this time on, such as 2030-01-01T00:00:00Z')
    .option('--to <time>', 'only before this time')
    .option('--actor <name>', 'only by the token of this name')
    .option('--action <name>', 'only of this kind, such as key.change')
    .option('--key <key>', 'only about this key: its id, or a name that only one key has')
    .option('--search <text>', 'only with this text in what a line says')
    .option(
      '--limit <n>',
      'only the newest n; the default is 20 on a terminal, and all otherwise',
      wholeNumber,
    )
    .option('--csv', 'print CSV')
    .option('--json', 'print JSON')
    .addHelpText('after', help)
    .action(printing(async () => (await import('../audit.ts')).listAudit));
}

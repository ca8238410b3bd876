import type { Command } from 'commander';
import type { RestoreOptions } from '../database/restore.ts';
import { report } from '../output.ts';
import { configOption } from './arguments.ts';

const help = `
The gateway must not run. The copy is checked first, and the file that was there is kept beside it.

Examples:
  textgate restore backup.db
  textgate restore backup.db --to data/textgate.db
  textgate restore - < backup.db
`;

/** Adds `textgate restore`. */
export function addRestoreCommand(program: Command): void {
  program
    .command('restore <file>')
    .description('put a backup in the place of the database of a stopped gateway')
    .option('--to <database>', 'the file of the database; default: that of the config or the environment')
    .option(configOption, 'the config file that names the database; default: TEXTGATE_CONFIG')
    .option(
      '--allow-migrated',
      'also over a database that textgate migrate has copied, or with a backup of one',
    )
    .addHelpText('after', help)
    .action((file: string, options: RestoreOptions) =>
      report(async () => (await import('../database/restore.ts')).restore(file, options)),
    );
}

import type { Command } from 'commander';
import { printing, report } from '../output.ts';
import { configOption } from './arguments.ts';

/** Adds `textgate backup`. */
export function addBackupCommand(program: Command): void {
  program
    .command('backup <file>')
    .description("copy the running gateway's database to a file, and check the copy")
    .option('--force', 'replace an existing file')
    .action((file: string, { force = false }: { force?: boolean }) =>
      report(async () => (await import('../database/backup.ts')).backUp(file, force)),
    );
}

const restoreHelp = `
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
    .addHelpText('after', restoreHelp)
    .action(printing(async () => (await import('../database/restore.ts')).restore));
}

const migrateHelp = `
The gateway of the file must not run; the PostgreSQL database must exist and be empty. Either
everything is copied and verified, or nothing. The file is kept.

Examples:
  textgate migrate sqlite:data/textgate.db postgres://textgate@db.example.com/textgate
  textgate migrate sqlite:data/textgate.db --to-env DATABASE_URL
`;

/** Adds `textgate migrate`. */
export function addMigrateCommand(program: Command): void {
  program
    .command('migrate <from> [to]')
    .description('copy the database of a stopped gateway to PostgreSQL, for several gateways on one database')
    .option(
      '--to-env <name>',
      'the environment variable with the URL of PostgreSQL (other users can read a password in an argument)',
    )
    .option('--json', 'print JSON')
    .addHelpText('after', migrateHelp)
    .action(printing(async () => (await import('../database/migrate.ts')).migrate));
}

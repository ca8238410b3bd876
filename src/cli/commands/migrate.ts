import type { Command } from 'commander';
import type { MigrateOptions } from '../database/migrate.ts';
import { report } from '../output.ts';

const help = `
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
    .addHelpText('after', help)
    .action((sqlite: string, postgres: string | undefined, options: MigrateOptions) =>
      report(async () => (await import('../database/migrate.ts')).migrate(sqlite, postgres, options)),
    );
}

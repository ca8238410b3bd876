import type { Command } from 'commander';
import { report } from '../output.ts';

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

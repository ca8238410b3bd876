import type { Command } from 'commander';
import { report } from '../output.ts';
import type { Json } from '../output.ts';

/** Adds `textgate config check|show|schema`. */
export function addConfigCommands(program: Command): void {
  const config = program
    .command('config')
    .description('check or print a config file without starting the gateway');
  config
    .command('check <file>')
    .description('report all problems of a config file')
    .action((file: string) => report(async () => (await import('../config.ts')).checkFile(file)));
  config
    .command('show <file>')
    .description('print the effective config as a valid file: defaults filled in, secrets hidden')
    .option('--json', 'print JSON in milliseconds, bytes and billionths of a dollar')
    .action((file: string, options: Json) =>
      report(async () => (await import('../config.ts')).showFile(file, options)),
    );
  config
    .command('schema')
    .description('print the JSON Schema of config files, for editors')
    .action(() => report(async () => (await import('../config.ts')).showSchema()));
}

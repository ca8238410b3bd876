import type { Command } from 'commander';
import { configArgument, configFileOf, configOption } from './arguments.ts';
import { report } from '../output.ts';
import type { Json } from '../output.ts';

interface ConfigOption {
  readonly config?: string;
}

function requireFile(file: string | undefined, options: ConfigOption, command: Command): string {
  const found = configFileOf(file, options, command);
  return (
    found ??
    command.error('error: no config file: give it as the argument, with --config or in TEXTGATE_CONFIG')
  );
}

/** Adds `textgate config check|show|schema`. */
export function addConfigCommands(program: Command): void {
  const config = program
    .command('config')
    .description('check or print a config file without starting the gateway');
  config
    .command('check [file]')
    .description('report all problems of a config file')
    .option(configOption, configArgument)
    .action((file: string | undefined, options: ConfigOption, command: Command) => {
      const checked = requireFile(file, options, command);
      return report(async () => (await import('../config.ts')).checkFile(checked));
    });
  config
    .command('show [file]')
    .description('print the effective config as a valid file: defaults filled in, secrets hidden')
    .option('--json', 'print JSON in milliseconds, bytes and billionths of a dollar')
    .option(configOption, configArgument)
    .action((file: string | undefined, options: Json & ConfigOption, command: Command) => {
      const shown = requireFile(file, options, command);
      return report(async () => (await import('../config.ts')).showFile(shown, options));
    });
  config
    .command('schema')
    .description('print the JSON Schema of config files, for editors')
    .action(() => report(async () => (await import('../config.ts')).showSchema()));
}

import type { Command } from 'commander';
import { loadConfigFile } from '../config/load.ts';
import { configSchema, redactedConfig } from '../config/redacted-config.ts';
import { report } from './output.ts';

/** Adds `textgate config check|show|schema`. */
export function addConfigCommands(program: Command): void {
  const config = program.command('config').description('look at a config file without starting anything');
  config
    .command('check <file>')
    .description('say everything that is wrong with it')
    .action((file: string) =>
      report(async () => {
        loadConfigFile(file, process.env);
        return `${file} is fine`;
      }),
    );
  config
    .command('show <file>')
    .description(
      'print it as it would be in force: defaults filled in, times in milliseconds, secrets hidden',
    )
    .action((file: string) =>
      report(async () => JSON.stringify(redactedConfig(loadConfigFile(file, process.env)), null, 2)),
    );
  config
    .command('schema')
    .description('print its JSON Schema, for editors')
    .action(() => report(async () => JSON.stringify(configSchema(), null, 2)));
}

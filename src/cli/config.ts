import type { Command } from 'commander';
import { loadConfigFile } from '../config/load.ts';
import { configSchema } from '../config/json-schema.ts';
import { redactedConfig } from '../config/redacted-config.ts';
import { report } from './output.ts';

/** Adds `textgate config check|show|schema`. */
export function addConfigCommands(program: Command): void {
  const config = program
    .command('config')
    .description('check or print a config file without starting the gateway');
  config
    .command('check <file>')
    .description('report all problems of a config file')
    .action((file: string) =>
      report(async () => {
        loadConfigFile(file, process.env);
        return `${file} is valid`;
      }),
    );
  config
    .command('show <file>')
    .description('print the effective config: defaults filled in, durations in milliseconds, secrets hidden')
    .action((file: string) =>
      report(async () => JSON.stringify(redactedConfig(loadConfigFile(file, process.env)), null, 2)),
    );
  config
    .command('schema')
    .description('print the JSON Schema of config files, for editors')
    .action(() => report(async () => JSON.stringify(configSchema(), null, 2)));
}

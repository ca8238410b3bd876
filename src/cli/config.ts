import type { Command } from 'commander';
import { loadConfigFile } from '../config/load.ts';
import { configSchema } from '../config/json-schema.ts';
import { redactedConfig, showConfig } from '../config/show-config.ts';
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
    .description('print the effective config as a valid file: defaults filled in, secrets hidden')
    .option('--json', 'print JSON in milliseconds, bytes and billionths of a dollar')
    .action((file: string, { json }: { json?: true }) =>
      report(async () => {
        const checked = loadConfigFile(file, process.env);
        return json ? JSON.stringify(redactedConfig(checked), null, 2) : showConfig(checked).trimEnd();
      }),
    );
  config
    .command('schema')
    .description('print the JSON Schema of config files, for editors')
    .action(() => report(async () => JSON.stringify(configSchema(), null, 2)));
}

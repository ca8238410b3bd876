import type { Command } from 'commander';
import { serveVariables } from '../../config/environment-variables.ts';
import { npmAdvice, takenByNpm } from './npm-options.ts';
import type { ServeOptions } from '../serve/serve-config.ts';
import { configFileOf, configOption, portNumber } from './arguments.ts';

/** The environment variables, for the help text. */
const environmentHelp = `
An option has precedence over the config file, and the file over the environment:
${serveVariables.map(({ name, meaning }) => `  ${name.padEnd(30)}  ${meaning}`).join('\n')}
`;

/** Adds `textgate serve`. */
export function addServeCommand(program: Command): void {
  program
    .command('serve')
    .description('start the gateway; `textgate` with options and no command does the same')
    .argument('[file]', 'the config file, like --config')
    .option(
      configOption,
      'a YAML config file; without one, options and environment variables configure the gateway',
    )
    .option(
      '--upstream <url>',
      'without a config file: the base URL of a server that speaks Chat Completions',
    )
    .option(
      '--upstream-key-env <name>',
      "the environment variable with the upstream's API key (on a command line, other users could read the key)",
    )
    .option('--host <address>', 'the address for clients')
    .option('--port <n>', 'the port for clients; 0 for any free one', portNumber)
    .option('--admin-host <address>', 'the address for operators')
    .option('--admin-port <n>', 'the port for operators; 0 for any free one', portNumber)
    .addHelpText('after', environmentHelp)
    .allowExcessArguments(takenByNpm(process.env).length > 0)
    .action(async (file: string | undefined, options: ServeOptions, command: Command) => {
      const taken = takenByNpm(process.env).filter((name) => name !== 'config');
      if (file !== undefined && taken.length > 0)
        command.error(`error: npm took --${taken.join(' and --')} as its own option: ${npmAdvice}`);
      const config = configFileOf(file, options, command);
      await (
        await import('../serve/serve.ts')
      ).serve({ ...options, ...(config === undefined ? {} : { config }) });
    });
}

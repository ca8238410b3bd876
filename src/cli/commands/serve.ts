import type { Command } from 'commander';
import { adminTokenFile } from '../../config/admin-token.ts';
import { readVariable } from '../../config/environment.ts';
import type { ServeOptions } from '../serve-config.ts';
import { portNumber } from './arguments.ts';

/** The environment variables, for the help text. */
const environmentHelp = `
An option has precedence over the config file, and the file over the environment:
  TEXTGATE_CONFIG                            the config file, like --config
  TEXTGATE_UPSTREAM_URL, _UPSTREAM_API_KEY   without a config file: the upstream and its key; default: a built-in demo
  TEXTGATE_HOST, TEXTGATE_PORT               the address for clients, like --host and --port
  TEXTGATE_ADMIN_HOST, _ADMIN_PORT           the address for operators, like --admin-host and --admin-port
  TEXTGATE_ADMIN_TOKEN                       the admin token; default: generated in ${adminTokenFile}
  TEXTGATE_KEY, TEXTGATE_KEY_FILE            an API key for clients, or the file that holds it; default: one is generated
  TEXTGATE_LOG                               silent, warn, info (default) or debug
  TEXTGATE_LOG_FORMAT                        json, or text: aligned lines, the default on a terminal
`;

/** Adds `textgate serve`. */
export function addServeCommand(program: Command): void {
  program
    .command('serve')
    .description('start the gateway; `textgate` with options and no command does the same')
    .option(
      '-c, --config <file>',
      'a YAML config file; without one, options and environment variables configure the gateway',
      readVariable(process.env, 'TEXTGATE_CONFIG'),
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
    .action(async (options: ServeOptions) => (await import('../serve.ts')).serve(options));
}

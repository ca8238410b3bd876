import { Option } from 'commander';
import type { Command } from 'commander';
import { serveVariables } from '../../config/environment.ts';
import type { ServeOptions } from '../serve/serve-config.ts';
import { report } from '../output.ts';
import type { Json } from '../output.ts';
import type { DoctorOptions } from '../doctor.ts';
import {
  npmAdvice,
  takenByNpm,
  configFileOf,
  configOption,
  portNumber,
  configArgument,
  exitBeforeRun,
} from './arguments.ts';

/** The environment variables, for the help text. */
const environmentHelp = `
An option has precedence over the config file, and the file over the environment:
${serveVariables.map(({ name, meaning }) => `  ${name.padEnd(30)}  ${meaning}`).join('\n')}
`;

/** Adds `textgate serve`. */
export function addServeCommand(program: Command): void {
  program
    .command('serve')
    .description('start the gateway; `textgate` without a command does the same')
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

/** Adds `textgate health`. */
export function addHealthCommand(program: Command): void {
  program
    .command('health')
    .description('ask a gateway whether it is alive; the exit code is 0 if it is, and else 1')
    .argument('[file]', "the gateway's config file, like --config")
    .option(
      configOption,
      "the gateway's config file, which names its admin listener; default: TEXTGATE_CONFIG",
    )
    .option('--ready', 'ask whether it can take requests now, instead of whether it is alive')
    .action((file: string | undefined, options: { config?: string; ready?: boolean }, command: Command) => {
      const config = file === undefined ? options.config : configFileOf(file, options, command);
      return report(async () => (await import('../health.ts')).checkHealth(config, options.ready === true));
    });
}

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

const doctorHelp = `
Each upstream is called about ten times, as the gateway calls it, which costs a few hundred tokens.
One model of each upstream is asked; --model names another one.
Without a URL or a file, those of TEXTGATE_CONFIG are checked, or that of TEXTGATE_UPSTREAM_URL.
Without any of these, the gateway that runs here checks those of its config.

Exit codes: 0 without a fault (there may be warnings), 1 with a fault, 2 for wrong usage or a wrong
config, 3 if the check itself fails.
`;

/** Adds `textgate doctor`. */
export function addDoctorCommand(program: Command): void {
  program
    .command('doctor')
    .description('check upstreams: connection, key, models, whole and streamed answers')
    .argument(
      '[url|file]',
      'the base URL of an upstream, version included, such as http://127.0.0.1:8000/v1; or a config file',
    )
    .option(
      '-c, --config <file>',
      'a config file, of which all upstreams are checked; default: TEXTGATE_CONFIG',
    )
    .option('-m, --model <name>', "the model to ask; default: that of the first route, or the list's first")
    .option('--key <key>', 'the API key for the URL (other users can read it while the command runs)')
    .option('--key-env <name>', 'the environment variable with the API key for the URL')
    .addOption(
      new Option(
        '--dialect <name>',
        'the protocol of the URL; default: chat, and responses if it is there',
      ).choices(['chat', 'responses', 'anthropic', 'gemini']),
    )
    .option('--timeout <duration>', 'how long one call may take; default: 30s')
    .option('--wrong-key', 'check, too, that a wrong key is refused')
    .option('--json', 'print JSON')
    .addHelpText('after', doctorHelp)
    .exitOverride(exitBeforeRun)
    .action(async (url: string | undefined, options: DoctorOptions) =>
      (await import('../doctor.ts')).runDoctor(url, options),
    );
}

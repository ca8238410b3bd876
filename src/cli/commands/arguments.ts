import { InvalidArgumentError } from 'commander';
import type { Command, CommanderError } from 'commander';
import { readVariable } from '../../config/environment.ts';
import type { Environment } from '../../config/environment.ts';

const maxPort = 65_535;

/** Reads a whole number of 1 or more. */
export function wholeNumber(text: string): number {
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('Expected a whole number of 1 or more.');
}

/** Reads names that are separated by commas; an empty text is a list without any. */
export function listOf(text: string): readonly string[] {
  return text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
}

/** Reads a TCP port; the system chooses one for 0. */
export function portNumber(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= maxPort) return Number(text);
  throw new InvalidArgumentError(`Expected a port from 0 to ${maxPort}.`);
}

/** The exit code for wrong usage of a command that has 1 for what it finds. */
const wrongUsage = 2;

/** Ends a command that was not understood, or whose help was asked for. */
export function exitBeforeRun({ exitCode }: CommanderError): never {
  process.exit(exitCode === 0 ? 0 : wrongUsage);
}

/** How commands name the option of the config file. */
export const configOption = '-c, --config <file>';

/** What commands say of the config file as their argument. */
export const configArgument = 'the config file, like --config; default: TEXTGATE_CONFIG';

/** The config file of a command: its argument, its option, or that of the environment. Ends the command if both are given. */
export function configFileOf(
  file: string | undefined,
  { config }: { readonly config?: string },
  command: Command,
) {
  if (file !== undefined && config !== undefined)
    command.error('error: give the config file once: as the argument or with --config');
  return file ?? config ?? readVariable(process.env, 'TEXTGATE_CONFIG');
}

/** Options that npm takes for its own if no `--` is before them. */
const optionsOfNpm = ['config', 'upstream', 'upstream-key-env', 'host', 'port', 'admin-host', 'admin-port'];

/** How options are given through npm. */
export const npmAdvice = 'with npm, write -- before options: npm start -- --port 8090';

/** The options that npm took. It passes them on as variables, and their values, if written behind a blank, as arguments. */
export function takenByNpm(environment: Environment): readonly string[] {
  if (environment['npm_lifecycle_event'] === undefined) return [];
  return optionsOfNpm.filter((name) => environment[`npm_config_${name.replaceAll('-', '_')}`] !== undefined);
}

import { environmentKeyName as environmentKey } from '../domain/keys/declared-key.ts';
import { isPlainObject } from '../shared/parse-json.ts';
import { schemaMessage } from '../shared/schema-messages.ts';
import { declaredSecret } from './declared-keys.ts';
import { readVariable } from './environment.ts';
import type { Environment } from './environment.ts';
import { isReference, unreplaced } from './file/environment-references.ts';
import { readSecretFile } from './secret-file.ts';

/** The settings of the listeners that options of the command line give. */
export interface ListenerOptions {
  readonly host?: string;
  readonly port?: number;
  readonly adminHost?: string;
  readonly adminPort?: number;
}

/** A setting that may come from a variable or an option. */
interface GivenSetting {
  readonly section: 'server' | 'admin' | 'storage';
  readonly key: 'host' | 'port' | 'shutdownDelay' | 'token' | 'readOnlyToken' | 'url';
  readonly variable: string;
  readonly option?: keyof ListenerOptions;
}

const settings: readonly GivenSetting[] = [
  { section: 'server', key: 'host', variable: 'TEXTGATE_HOST', option: 'host' },
  { section: 'server', key: 'port', variable: 'TEXTGATE_PORT', option: 'port' },
  { section: 'server', key: 'shutdownDelay', variable: 'TEXTGATE_SHUTDOWN_DELAY' },
  { section: 'admin', key: 'host', variable: 'TEXTGATE_ADMIN_HOST', option: 'adminHost' },
  { section: 'admin', key: 'port', variable: 'TEXTGATE_ADMIN_PORT', option: 'adminPort' },
  { section: 'admin', key: 'token', variable: 'TEXTGATE_ADMIN_TOKEN' },
  { section: 'admin', key: 'readOnlyToken', variable: 'TEXTGATE_ADMIN_READ_ONLY_TOKEN' },
  { section: 'storage', key: 'url', variable: 'TEXTGATE_STORAGE_URL' },
];

const flags: Readonly<Record<keyof ListenerOptions, string>> = {
  host: '--host',
  port: '--port',
  adminHost: '--admin-host',
  adminPort: '--admin-port',
};

/**
 * Adds the settings that come from options and variables to an unchecked config, so that they are checked with all
 * others. An option has precedence over the file, and the file over the environment. An empty section counts as left out.
 */
export function withGivenSettings(
  input: unknown,
  environment: Environment,
  options: ListenerOptions,
): unknown {
  if (!isPlainObject(input)) return input;
  const sections = Object.fromEntries(Object.entries(input).filter(([, section]) => section !== null));
  const completed = (name: GivenSetting['section']): unknown => {
    const section: unknown = sections[name];
    if (section !== undefined && (typeof section !== 'object' || section === null)) return section;
    const own = settings.filter((setting) => setting.section === name);
    const fromVariables = own.map(({ key, variable }) => [key, readVariable(environment, variable)] as const);
    const fromOptions = own.map(({ key, option }) => [key, option && options[option]] as const);
    // An image sets the host: the file's socket, which takes the place of an address, has precedence over that.
    const isAtSocket = name === 'server' && Object.hasOwn(section ?? {}, 'socket');
    const variables = fromVariables.filter(([key]) => !isAtSocket || (key !== 'host' && key !== 'port'));
    return { ...given(variables), ...section, ...given(fromOptions) };
  };
  return {
    ...sections,
    server: completed('server'),
    admin: completed('admin'),
    storage: completed('storage'),
  };
}

/** The entries that have a value. An empty text is one: a blank option is refused, and not replaced by a default. */
function given(entries: readonly (readonly [key: string, value: string | number | null | undefined])[]) {
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined && value !== null));
}

/** The option or variable from which a setting comes; `null` for one of the file, or a default. */
export function sourceOfGivenSetting(
  [section, key]: readonly PropertyKey[],
  environment: Environment,
  options: ListenerOptions,
  isInFile: boolean,
): string | null {
  const setting = settings.find((each) => each.section === section && each.key === key);
  if (setting === undefined) return null;
  const { option, variable } = setting;
  if (option !== undefined && options[option] !== undefined) return flags[option];
  return isInFile || readVariable(environment, variable) === undefined ? null : variable;
}

/** An unchecked config with the key of the environment, and what is wrong with that key. */
interface WithEnvironmentKey {
  readonly input: unknown;
  /** Each with the variable's name, rather than a path that the operator has not written. */
  readonly problems: readonly string[];
}

/**
 * Adds the key of `TEXTGATE_KEY`, or of the file in `TEXTGATE_KEY_FILE`, to those that an unchecked config declares. No
 * problem quotes it.
 */
export function withEnvironmentKey(input: unknown, environment: Environment): WithEnvironmentKey {
  const text = readVariable(environment, 'TEXTGATE_KEY');
  const file = readVariable(environment, 'TEXTGATE_KEY_FILE');
  const refuse = (variable: string, problem: string): WithEnvironmentKey => ({
    input,
    problems: [`${variable}: ${problem}`],
  });
  if (text !== undefined && file !== undefined)
    return refuse('TEXTGATE_KEY', 'TEXTGATE_KEY_FILE is set, too: set one of them');
  if (text !== undefined) return declare(input, text, (problem) => refuse('TEXTGATE_KEY', problem));
  if (file === undefined) return { input, problems: [] };
  const inFile = (problem: string): WithEnvironmentKey => refuse('TEXTGATE_KEY_FILE', problem);
  try {
    return declare(input, readSecretFile(file), inFile);
  } catch (error) {
    return inFile(error instanceof Error ? error.message : String(error));
  }
}

/** The variable from which the declared key at a path comes that is not in the file; `null` for any other path. */
export function sourceOfKey(
  [section, name, key]: readonly PropertyKey[],
  environment: Environment,
): string | null {
  if (section !== 'keys' || name !== environmentKey || key !== 'key') return null;
  return readVariable(environment, 'TEXTGATE_KEY') === undefined ? 'TEXTGATE_KEY_FILE' : 'TEXTGATE_KEY';
}

function declare(
  input: unknown,
  text: string,
  refuse: (problem: string) => WithEnvironmentKey,
): WithEnvironmentKey {
  // Its hash would be stored, and the name of the variable would be a key that can be guessed.
  if (isReference(text)) return refuse(unreplaced);
  const read = declaredSecret.safeParse(text, { error: schemaMessage });
  if (!read.success) return refuse(read.error.issues.map(({ message }) => message).join('; '));
  const declared = isPlainObject(input) ? (input['keys'] ?? {}) : null;
  // What is no object is reported by the check of the config.
  if (!isPlainObject(declared)) return { input, problems: [] };
  if (Object.hasOwn(declared, environmentKey))
    return refuse(`keys.${environmentKey} in the config has the name of this key: rename that one`);
  const keys = { ...declared, [environmentKey]: { key: read.data } };
  return { input: { ...(input as object), keys }, problems: [] };
}

import { readVariable } from './environment.ts';
import type { Environment } from './environment.ts';

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
  readonly option: keyof ListenerOptions | null;
}

const settings: readonly GivenSetting[] = [
  { section: 'server', key: 'host', variable: 'TEXTGATE_HOST', option: 'host' },
  { section: 'server', key: 'port', variable: 'TEXTGATE_PORT', option: 'port' },
  { section: 'server', key: 'shutdownDelay', variable: 'TEXTGATE_SHUTDOWN_DELAY', option: null },
  { section: 'admin', key: 'host', variable: 'TEXTGATE_ADMIN_HOST', option: 'adminHost' },
  { section: 'admin', key: 'port', variable: 'TEXTGATE_ADMIN_PORT', option: 'adminPort' },
  { section: 'admin', key: 'token', variable: 'TEXTGATE_ADMIN_TOKEN', option: null },
  { section: 'admin', key: 'readOnlyToken', variable: 'TEXTGATE_ADMIN_READ_ONLY_TOKEN', option: null },
  { section: 'storage', key: 'url', variable: 'TEXTGATE_STORAGE_URL', option: null },
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
  if (typeof input !== 'object' || input === null || Array.isArray(input)) return input;
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
  if (option !== null && options[option] !== undefined) return flags[option];
  return isInFile || readVariable(environment, variable) === undefined ? null : variable;
}

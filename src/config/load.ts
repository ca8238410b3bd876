import { readFileSync } from 'node:fs';
import { LineCounter, parseDocument } from 'yaml';
import { readVariable } from './environment.ts';
import type { Environment } from './environment.ts';
import { readConfig } from './read-config.ts';
import { namesInConfig, namesInEnvironment } from './setting-names.ts';
import type { Config } from './schema.ts';

/** A config that can't be used, with all of its problems. */
export class ConfigError extends Error {
  readonly problems: readonly string[];

  constructor(source: string, problems: readonly string[]) {
    super(`${source} can't be used:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`);
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

/** Reads a YAML file, with `${NAME}` replaced by the environment's values. Throws `ConfigError`. */
export function loadConfigFile(file: string, environment: Environment): Config {
  const problems: string[] = [];
  const input = interpolate(parseFile(file), environment, '', problems);
  return checkConfig(withListeners(input, environment), file, problems);
}

/**
 * The config of a start without a file: the upstream at `TEXTGATE_UPSTREAM_URL` with the models it lists,
 * or else the built-in demo. Throws `ConfigError`.
 */
export function environmentConfig(environment: Environment): Config {
  const url = readVariable(environment, 'TEXTGATE_UPSTREAM_URL');
  const apiKey = readVariable(environment, 'TEXTGATE_UPSTREAM_API_KEY');
  const name = upstreamName(url);
  const input =
    url === undefined
      ? {
          upstreams: { demo: { url: 'demo:' } },
          models: { demo: { routes: [{ upstream: 'demo', model: 'demo' }], free: true } },
        }
      : {
          upstreams: { [name]: { url, ...(apiKey === undefined ? {} : { apiKey }) } },
          models: { from: name },
        };
  return namingVariables(name, () => checkConfig(withListeners(input, environment), 'the environment'));
}

/** The name of the upstream of the environment: its host, with the port unless it is the scheme's own. */
function upstreamName(url: string | undefined): string {
  return URL.parse(url ?? '')?.host || 'upstream';
}

/** The config path that each variable sets in a start without a file. */
const variables: readonly (readonly [path: string, variable: string])[] = [
  ['server.host', 'TEXTGATE_HOST'],
  ['server.port', 'TEXTGATE_PORT'],
  ['admin.host', 'TEXTGATE_ADMIN_HOST'],
  ['admin.port', 'TEXTGATE_ADMIN_PORT'],
  ['admin.token', 'TEXTGATE_ADMIN_TOKEN'],
];

/** Names the environment variables in problems, instead of config paths that the operator has not written. */
function namingVariables(upstream: string, load: () => Config): Config {
  const [paths, names] = [namesInConfig(upstream), namesInEnvironment()];
  const upstreamVariables = [
    [paths.url, names.url],
    [paths.apiKey, names.apiKey],
  ] as const;
  try {
    return load();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const named = error.problems.map((problem) => {
      const found = [...variables, ...upstreamVariables].find(([path]) => problem.startsWith(`${path}:`));
      return found === undefined ? problem : problem.replace(found[0], found[1]);
    });
    throw new ConfigError('the environment', named);
  }
}

/** Checks a config given as an object. Throws `ConfigError` with its problems and those that are `known` already. */
export function checkConfig(input: unknown, source: string, known: readonly string[] = []): Config {
  const read = readConfig(input);
  const problems = read.kind === 'problems' ? [...known, ...read.problems] : known;
  if (read.kind === 'problems' || problems.length > 0) throw new ConfigError(source, problems);
  return read.config;
}

/** Parses a YAML file. Errors never quote it: a line may hold a key, and the message goes into the log. */
function parseFile(file: string): unknown {
  const lineCounter = new LineCounter();
  const document = parseDocument(readText(file), { prettyErrors: false, lineCounter });
  const [error] = document.errors;
  if (error !== undefined) {
    const { line, col } = lineCounter.linePos(error.pos[0]);
    throw new ConfigError(file, [`line ${line}, column ${col}: not valid YAML (${error.code})`]);
  }
  try {
    return document.toJS();
  } catch {
    throw new ConfigError(file, ['not valid YAML: unresolved alias']);
  }
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new ConfigError(file, [error instanceof Error ? error.message : String(error)]);
  }
}

/** Replaces `${NAME}` in string values, after parsing, so that a value can't change the file's structure. */
function interpolate(value: unknown, environment: Environment, path: string, problems: string[]): unknown {
  if (typeof value === 'string')
    return value.replace(/\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g, (whole, name: string) => {
      const found = environment[name];
      if (found === undefined) problems.push(`${path}: the environment variable ${name} is not set`);
      return found ?? whole;
    });
  if (Array.isArray(value))
    return value.map((item, index) => interpolate(item, environment, `${path}[${index}]`, problems));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [
      key,
      interpolate(item, environment, path === '' ? key : `${path}.${key}`, problems),
    ]),
  );
}

/**
 * Fills in the settings of the listeners that the file leaves out from the environment; a value in the file has
 * precedence. An empty section counts as left out.
 */
function withListeners(input: unknown, environment: Environment): unknown {
  if (typeof input !== 'object' || input === null) return input;
  const sections = Object.fromEntries(Object.entries(input).filter(([, section]) => section !== null));
  return {
    ...sections,
    server: listener(sections['server'], environment, { host: 'TEXTGATE_HOST', port: 'TEXTGATE_PORT' }),
    admin: listener(sections['admin'], environment, {
      host: 'TEXTGATE_ADMIN_HOST',
      port: 'TEXTGATE_ADMIN_PORT',
      token: 'TEXTGATE_ADMIN_TOKEN',
    }),
  };
}

function listener(
  section: unknown,
  environment: Environment,
  names: Readonly<Record<string, string>>,
): unknown {
  if (section !== undefined && (typeof section !== 'object' || section === null)) return section;
  const given = Object.entries(names)
    .map(([key, name]) => [key, readVariable(environment, name)] as const)
    .filter(([, value]) => value !== undefined);
  return { ...Object.fromEntries(given), ...section };
}

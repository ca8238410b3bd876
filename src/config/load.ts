import { readFileSync } from 'node:fs';
import { plainDecimal } from '../shared/money.ts';
import { withEnvironmentKey } from './environment-key.ts';
import { resolveReferences, unreplacedReferences } from './file/environment-references.ts';
import { readVariable } from './environment.ts';
import type { Environment } from './environment.ts';
import { namesInConfig, namesInEnvironment } from './setting-names.ts';
import { writePath, writeProblem } from './problem.ts';
import type { Problem } from './problem.ts';
import { readConfig, schemaOf } from './read-config.ts';
import { allKeys, mapValues, schemaAt } from './schema/schema-walk.ts';
import { anyConfig } from './schema/schema.ts';
import type { Config } from './schema/schema.ts';
import { parseYaml } from './file/yaml-file.ts';
import type { YamlPlaces } from './file/yaml-file.ts';

/** A config that can't be used, with all of its problems. */
export class ConfigError extends Error {
  readonly problems: readonly string[];

  constructor(source: string, problems: readonly string[]) {
    const items = problems.map((problem) => `  - ${problem.replaceAll('\n', '\n    ')}`);
    super(`${source} can't be used:\n${items.join('\n')}`);
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

/** Reads a YAML file, with `${NAME}` replaced by the environment's values. Throws `ConfigError`. */
export function loadConfigFile(file: string, environment: Environment): Config {
  return loadFile(file, environment, (input) => input, withEnvironmentKey);
}

/**
 * The settings of the admin listener in a YAML file whose other sections may have faults: a gateway keeps its previous
 * config when its file gets some, and its admin listener is where it was. Throws `ConfigError`.
 */
export function loadAdminSection(file: string, environment: Environment): Config['admin'] {
  return loadFile(file, environment, adminOnly, (input) => ({ input, problems: [] })).admin;
}

function adminOnly(input: unknown): unknown {
  const { admin = null } = (input ?? {}) as { readonly admin?: unknown };
  return { admin, upstreams: {}, models: {} };
}

/** Reads what is selected of a YAML file, with the key that the environment declares. */
function loadFile(
  file: string,
  environment: Environment,
  select: (input: unknown) => unknown,
  declare: typeof withEnvironmentKey,
): Config {
  const yaml = parseYaml(readText(file), new Set(allKeys(anyConfig)));
  if (yaml.kind === 'faults') throw new ConfigError(file, yaml.faults);
  const { places } = yaml;
  const written = writtenPrices(select(yaml.value), places);
  const { value, problems: misspelt } = resolveReferences(written, environment);
  const declared = declare(value, environment);
  const read = readConfig(withListeners(declared.input, environment));
  if (read.kind === 'config' && misspelt.length === 0 && declared.problems.length === 0) return read.config;
  // What is under an unknown key has no problems of its own: its path could be a secret after a colon without a blank.
  const known = misspelt.filter(({ path }) => schemaAt(schemaOf(value), path) !== null);
  const problems = withoutRepeated(known, read.kind === 'problems' ? read.problems : []);
  throw new ConfigError(file, [...placeProblems(problems, places, environment), ...declared.problems]);
}

/** Takes prices that are written as numbers from the text of the file: as numbers they would lose digits. */
function writtenPrices(input: unknown, places: YamlPlaces): unknown {
  return mapValues(schemaOf(input), input, (value, kind, path) =>
    kind === 'usd' && typeof value === 'number' ? plainDecimal(places.sourceOf(path) ?? '') : value,
  );
}

/** Writes problems in the order of the file. One of a setting that comes from a variable has the variable's name. */
function placeProblems(
  problems: readonly Problem[],
  places: YamlPlaces,
  environment: Environment,
): readonly string[] {
  const placed = problems
    .map((problem) => ({ problem, ...places.placeOf(problem.path) }))
    .toSorted((one, other) => one.offset - other.offset);
  return placed.map(({ problem, line }) => {
    const [, variable] = variables.find(([path]) => path === writePath(problem.path)) ?? [];
    const isFromFile = variable === undefined || places.has(problem.path);
    return isFromFile || readVariable(environment, variable) === undefined
      ? `line ${line}: ${writeProblem(problem)}`
      : `${variable}: ${problem.message}`;
  });
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
          // The upstream is named after its address, which is not for the holders of keys.
          receipts: { upstreams: 'hidden' },
        };
  const declared = withEnvironmentKey(input, environment);
  return namingVariables(name, () =>
    checkConfig(withListeners(declared.input, environment), 'the environment', declared.problems),
  );
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
  ['keys.environment.key', 'TEXTGATE_KEY'],
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
  const references = unreplacedReferences(schemaOf(input), input);
  if (read.kind === 'config' && references.length === 0 && known.length === 0) return read.config;
  const others = read.kind === 'problems' ? read.problems : [];
  throw new ConfigError(source, [...known, ...withoutRepeated(references, others).map(writeProblem)]);
}

/** Problems of two checks: one value has one problem, and that of its reference explains the others. */
function withoutRepeated(references: readonly Problem[], others: readonly Problem[]): readonly Problem[] {
  const isKnown = new Set(references.map(({ path }) => writePath(path)));
  return [...references, ...others.filter(({ path }) => !isKnown.has(writePath(path)))];
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new ConfigError(file, [describeReadFault(error as NodeJS.ErrnoException)]);
  }
}

function describeReadFault({ code, message }: NodeJS.ErrnoException): string {
  if (code === 'ENOENT') return 'there is no such file';
  if (code === 'EISDIR') return 'this is a folder, and not a file';
  return code === 'EACCES' ? 'this user may not read the file' : message;
}

/**
 * Fills in the settings of the listeners that the file leaves out from the environment; a value in the file has
 * precedence. An empty section counts as left out.
 */
function withListeners(input: unknown, environment: Environment): unknown {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) return input;
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

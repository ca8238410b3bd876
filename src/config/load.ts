import { plainDecimal } from '../shared/money.ts';
import { defaultHost } from './default-addresses.ts';
import {
  sourceOfKey,
  withEnvironmentKey,
  sourceOfGivenSetting,
  withGivenSettings,
} from './given-settings.ts';
import { resolveReferences, unreplacedReferences } from './file/environment-references.ts';
import { readVariable } from './environment.ts';
import type { Environment } from './environment.ts';
import type { ListenerOptions } from './given-settings.ts';
import { namesInEnvironment } from './setting-names.ts';
import { writeProblem } from './problem.ts';
import type { Problem } from './problem.ts';
import { readConfig, schemaOf } from './read-config.ts';
import type { ConfigReading } from './read-config.ts';
import { describeReadFault, readText } from './read-file.ts';
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

/**
 * Reads a YAML file, with `${NAME}` replaced by the environment's values; `options` have precedence over its listeners.
 * `text` is that of the file if it has been read before. Throws `ConfigError`.
 */
export function loadConfigFile(
  file: string,
  environment: Environment,
  options: ListenerOptions = {},
  text = readConfigText(file),
): Config {
  return loadText({ file, text }, { environment, options }, (input) => input, withEnvironmentKey);
}

/**
 * The settings of the admin listener in a YAML file whose other sections may have faults: a gateway keeps its previous
 * config when its file gets some, and its admin listener is where it was. Throws `ConfigError`.
 */
export function loadAdminSection(file: string, environment: Environment): Config['admin'] {
  const places = { environment, options: {} };
  const source = { file, text: readConfigText(file) };
  return loadText(source, places, sectionOnly('admin'), noDeclaration).admin;
}

/**
 * The settings of the database in a YAML file whose other sections may have faults, or without a file those of the environment.
 * Throws `ConfigError`.
 */
export function loadStorageSection(file: string | null, environment: Environment): Config['storage'] {
  const source =
    file === null ? { file: 'the environment', text: '{}' } : { file, text: readConfigText(file) };
  return loadText(source, { environment, options: {} }, sectionOnly('storage'), noDeclaration).storage;
}

const noDeclaration: typeof withEnvironmentKey = (input) => ({ input, problems: [] });

/** Selects one section, in place of all others some without a fault. */
function sectionOnly(section: 'admin' | 'storage'): (input: unknown) => unknown {
  return (input) => {
    const { [section]: selected = null } = (input ?? {}) as {
      readonly [Section in typeof section]?: unknown;
    };
    return { [section]: selected, server: noConflict, upstreams: {}, models: {} };
  };
}

/** An address for clients that neither has a fault nor a port in common with the admin listener. */
const noConflict = { host: defaultHost, port: 0 };

/** Where settings come from beside the file. */
interface OtherPlaces {
  readonly environment: Environment;
  readonly options: ListenerOptions;
}

/** Checks what is selected of the text of a YAML file, with the key that the environment declares. */
function loadText(
  { file, text }: { readonly file: string; readonly text: string },
  others: OtherPlaces,
  select: (input: unknown) => unknown,
  declare: typeof withEnvironmentKey,
): Config {
  const { environment, options } = others;
  const yaml = parseYaml(text, new Set(allKeys(anyConfig)));
  if (yaml.kind === 'faults') throw new ConfigError(file, yaml.faults);
  const { places } = yaml;
  const written = writtenPrices(select(yaml.value), places);
  const { value, problems: misspelt } = resolveReferences(written, environment);
  const declared = declare(value, environment);
  const read = readConfig(withGivenSettings(declared.input, environment, options), blamedListener(options));
  if (read.kind === 'config' && misspelt.length === 0 && declared.problems.length === 0) return read.config;
  // What is under an unknown key has no problems of its own: its path could be a secret after a colon without a blank.
  const known = misspelt.filter(({ path }) => schemaAt(schemaOf(value), path) !== null);
  const problems = withoutRepeated(known, read.kind === 'problems' ? read.problems : []);
  throw new ConfigError(file, [...placeProblems(problems, places, others), ...declared.problems]);
}

/** The listener at which a conflict is found: the one whose port an option gives, if it gives no other. */
function blamedListener({ port, adminPort }: ListenerOptions): 'server' | 'admin' {
  return port !== undefined && adminPort === undefined ? 'server' : 'admin';
}

/** Takes prices that are written as numbers from the text of the file: as numbers they would lose digits. */
function writtenPrices(input: unknown, places: YamlPlaces): unknown {
  return mapValues(schemaOf(input), input, (value, kind, path) =>
    kind === 'usd' && typeof value === 'number' ? plainDecimal(places.sourceOf(path) ?? '') : value,
  );
}

/** Writes problems in the order of the file. One of a setting that comes from an option or a variable has its name. */
function placeProblems(
  problems: readonly Problem[],
  places: YamlPlaces,
  others: OtherPlaces,
): readonly string[] {
  const placed = problems
    .map((problem) => ({ problem, ...places.placeOf(problem.path) }))
    .toSorted((one, other) => one.offset - other.offset);
  return placed.map(({ problem, line }) => {
    const source = sourceOf(problem.path, others, places.has(problem.path));
    return source === null ? `line ${line}: ${writeProblem(problem)}` : `${source}: ${problem.message}`;
  });
}

/** The option or variable from which a setting comes; `null` for any other place. */
function sourceOf(
  path: readonly PropertyKey[],
  { environment, options }: OtherPlaces,
  isInFile: boolean,
): string | null {
  return (
    sourceOfGivenSetting(path, environment, options, isInFile) ??
    (isInFile ? null : sourceOfKey(path, environment))
  );
}

/**
 * The config of a start without a file: the upstream at `TEXTGATE_UPSTREAM_URL` with the models it lists,
 * or else the built-in demo. Throws `ConfigError`.
 */
export function environmentConfig(environment: Environment, options: ListenerOptions = {}): Config {
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
  const read = check(withGivenSettings(declared.input, environment, options), blamedListener(options));
  if (read.kind === 'config' && declared.problems.length === 0) return read.config;
  const problems = read.kind === 'problems' ? read.problems : [];
  const written = problems.map((problem) => {
    const source = upstreamSource(problem.path) ?? sourceOf(problem.path, { environment, options }, false);
    return source === null ? writeProblem(problem) : `${source}: ${problem.message}`;
  });
  throw new ConfigError('the environment', [...declared.problems, ...written]);
}

/** The variable of a setting of the environment's upstream; `null` for any other setting. */
function upstreamSource([section, , key]: readonly PropertyKey[]): string | null {
  const { url, apiKey } = namesInEnvironment();
  if (section !== 'upstreams') return null;
  return key === 'url' ? url : key === 'apiKey' ? apiKey : null;
}

/** The name of the upstream of the environment: its host, with the port unless it is the scheme's own. */
function upstreamName(url: string | undefined): string {
  return URL.parse(url ?? '')?.host || 'upstream';
}

/** Checks a config given as an object. Throws `ConfigError` with its problems. */
export function checkConfig(input: unknown, source: string): Config {
  const read = check(input);
  if (read.kind === 'config') return read.config;
  throw new ConfigError(source, read.problems.map(writeProblem));
}

/** Checks a config in which references have not been replaced. */
function check(input: unknown, blamed: 'server' | 'admin' = 'admin'): ConfigReading {
  const read = readConfig(input, blamed);
  const references = unreplacedReferences(schemaOf(input), input);
  if (references.length === 0) return read;
  const others = read.kind === 'problems' ? read.problems : [];
  return { kind: 'problems', problems: withoutRepeated(references, others) };
}

/** Problems of two checks: one value has one problem, and that of its reference explains the others. */
function withoutRepeated(references: readonly Problem[], others: readonly Problem[]): readonly Problem[] {
  const known = new Set(references.map(({ path }) => JSON.stringify(path)));
  return [...references, ...others.filter(({ path }) => !known.has(JSON.stringify(path)))];
}

/** The largest config file, in bytes. */
const maxConfigBytes = 16_777_216;

/** The text of a config file. Throws `ConfigError`. */
export function readConfigText(file: string): string {
  try {
    return readText(file, maxConfigBytes);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new ConfigError(file, [describeReadFault(code) ?? message]);
  }
}

import { listModels } from '../../composition/upstreams/list-models.ts';
import { readVariable } from '../../config/environment.ts';
import type { Environment } from '../../config/environment.ts';
import { ConfigError, loadConfigFile } from '../../config/load.ts';
import { writePath } from '../../config/problem.ts';
import { isLocalHost } from '../../config/proxy-environment.ts';
import type { Config } from '../../config/schema/schema.ts';
import { namesInAnyConfig } from '../../config/setting-names.ts';
import type { SettingNames } from '../../domain/diagnosis/call-target.ts';
import { keyPrefix } from '../../protocol/upstream/words/secret-shapes.ts';
import { providers, referenceTo, variableOf } from './known-upstreams.ts';
import type { AskedUpstream, FoundUpstream } from './known-upstreams.ts';
import { writeDiscovery } from './write-config.ts';

/** The providers whose keys are in the variables that their SDKs read, and the upstream of a gateway without a config. */
export function findInEnvironment(environment: Environment): readonly FoundUpstream[] {
  const at = (name: string, variable: string): readonly FoundUpstream[] => {
    const url = readVariable(environment, name);
    if (url === undefined) return [];
    const isKeyed = readVariable(environment, variable) !== undefined;
    return [upstreamAt({ url, variable: isKeyed ? variable : null, foundBy: name })];
  };
  // SDKs of OpenAI send its key to this address: the key may be another server's.
  const [elsewhere] = at('OPENAI_BASE_URL', 'OPENAI_API_KEY');
  const found = providers.flatMap(({ name, line }) => {
    const variable = variableOf(line) ?? '';
    if (readVariable(environment, variable) === undefined) return [];
    return name === 'openai' && elsewhere !== undefined ? [elsewhere] : [{ name, line, foundBy: variable }];
  });
  return [...at('TEXTGATE_UPSTREAM_URL', 'TEXTGATE_UPSTREAM_API_KEY'), ...found];
}

/** Where an upstream is: its URL, the variable with its key, if it has one, and what the URL comes from. */
export interface UpstreamPlace {
  readonly url: string;
  readonly variable: string | null;
  readonly foundBy: string;
}

/** Names of a query's parameters that are those of keys; `api-version` is none. */
const secretNames = /key|token|secret|sig|password|auth|cookie|credential|session|jwt|^code$/i;

/** How long a part of an address is at least that is a key, in characters. */
const minKeyChars = 16;

/** Whether the query of an address has a key, or a part of it has the form of one: ids of hex digits and names have not. */
export function hasKey({ host, pathname, search, searchParams }: URL): boolean {
  const parts = `${host}${pathname}${search}`.split(/[/?&=]/);
  const hasForm = parts.some(isKeyLike);
  return hasForm || [...searchParams.keys()].some((name) => secretNames.test(name));
}

function isKeyLike(part: string): boolean {
  if (part.length < minKeyChars) return false;
  return part.startsWith('eyJ') || (/\d/.test(part) && keyPrefix.test(part));
}

/** The upstream at a URL, with the settings of the provider whose address it is. Throws for a URL that has a key in it. */
export function upstreamAt({ url, variable, foundBy }: UpstreamPlace): FoundUpstream {
  const address = URL.parse(url);
  if (address !== null && hasKey(address))
    throw new Error(
      `${foundBy}: a key in the URL would stand in the file: put it into a variable, and name that with --api-key-env`,
    );
  const known = providers.find(({ line }) => URL.parse(line.url)?.href === address?.href.replace(/\/$/, ''));
  const key = variable === null ? {} : { apiKey: referenceTo(variable) };
  if (known !== undefined) return { name: known.name, line: { ...known.line, ...key }, foundBy };
  const hostname = address?.hostname ?? '';
  const name = isLocalHost(hostname) ? 'local' : hostname || 'upstream';
  return { name, line: { url, ...key }, foundBy };
}

/** Asks upstreams for their models, all at once. Rejects for one whose settings have a fault. */
export function askForModels(
  found: readonly FoundUpstream[],
  environment: Environment,
): Promise<readonly AskedUpstream[]> {
  return Promise.all(
    found.map(async (upstream) => {
      const listed = await listModels(readUpstream(upstream, environment), () => namesOf(upstream));
      return Object.assign({ listed }, upstream);
    }),
  );
}

/** The config with an upstream alone. Throws where its settings have a fault, in the words for what the operator has given. */
function readUpstream(upstream: FoundUpstream, environment: Environment): Config {
  try {
    return loadConfigFile('the upstream', environment, {}, writeDiscovery(upstream));
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const { url, apiKey } = namesOf(upstream);
    const problems = error.problems.map((problem) =>
      problem
        .replace(/^line \d+: /, '')
        .replace(writePath(['upstreams', upstream.name, 'url']), url)
        .replace(writePath(['upstreams', upstream.name, 'apiKey']), apiKey),
    );
    throw new Error(problems.join('\n'), { cause: error });
  }
}

/** Names what the operator has given of an upstream. */
function namesOf({ line, foundBy }: FoundUpstream): SettingNames {
  const variable = variableOf(line);
  const apiKey = variable === null ? '--api-key-env' : `the variable ${variable}`;
  return { url: foundBy === variable ? line.url : foundBy, apiKey, ...namesInAnyConfig };
}

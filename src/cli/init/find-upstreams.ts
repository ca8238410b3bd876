import { listModels } from '../../composition/upstreams/list-models.ts';
import { readVariable } from '../../config/environment.ts';
import type { Environment } from '../../config/environment.ts';
import { ConfigError, loadConfigFile } from '../../config/load.ts';
import { writePath } from '../../config/problem.ts';
import type { Config } from '../../config/schema/schema.ts';
import { namesInAnyConfig } from '../../config/setting-names.ts';
import type { SettingNames } from '../../domain/diagnosis/call-target.ts';
import { providers, referenceTo, variableOf } from './known-upstreams.ts';
import type { AskedUpstream, FoundUpstream } from './known-upstreams.ts';
import { writeDiscovery } from './write-config.ts';

/** The providers whose keys are in the variables that their SDKs read, and the upstream of a gateway without a config. */
export function findInEnvironment(environment: Environment): readonly FoundUpstream[] {
  const own = readVariable(environment, 'TEXTGATE_UPSTREAM_URL');
  const ownKey = 'TEXTGATE_UPSTREAM_API_KEY';
  const isKeyed = readVariable(environment, ownKey) !== undefined;
  const given = own === undefined ? [] : [upstreamAt(own, isKeyed ? ownKey : null)];
  // SDKs of OpenAI send its key to this address: the key may be another server's.
  const elsewhere = readVariable(environment, 'OPENAI_BASE_URL');
  const found = providers.flatMap(({ name, line }) => {
    const variable = variableOf(line) ?? '';
    if (readVariable(environment, variable) === undefined) return [];
    if (name === 'openai' && elsewhere !== undefined) return [upstreamAt(elsewhere, variable)];
    return [{ name, line, because: variable }];
  });
  return [...given, ...found];
}

/** The upstream at a URL, with the settings of the provider whose address it is; its key is in a variable, if it has one. */
export function upstreamAt(url: string, variable: string | null): FoundUpstream {
  const address = URL.parse(url);
  const known = providers.find(({ line }) => URL.parse(line.url)?.href === address?.href.replace(/\/$/, ''));
  const key = variable === null ? {} : { apiKey: referenceTo(variable) };
  if (known !== undefined) return { name: known.name, line: { ...known.line, ...key }, because: url };
  const hostname = address?.hostname ?? '';
  const name = /^(?:localhost|127\.|\[::1\])/.test(hostname) ? 'local' : hostname;
  return {
    name: name === '' ? 'upstream' : name,
    line: { url: url, ...key },
    because: address?.origin ?? 'the URL',
  };
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
function namesOf({ line }: FoundUpstream): SettingNames {
  const variable = variableOf(line);
  const apiKey = variable === null ? '--api-key-env' : `the variable ${variable}`;
  return { url: 'the URL', apiKey, ...namesInAnyConfig };
}

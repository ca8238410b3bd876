import { readVariable } from '../../config/environment.ts';
import type { Environment } from '../../config/environment.ts';
import type { ListenerOptions } from '../../config/given-settings.ts';
import { ConfigError, environmentConfig, loadConfigFile, readConfigText } from '../../config/load.ts';
import { describeUnset } from '../../config/quotable.ts';
import type { Config } from '../../config/schema/schema.ts';
import { namesInConfig, namesInEnvironment } from '../../config/setting-names.ts';
import { isSharedDatabase } from '../../config/database-url.ts';
import { needsSharedDatabase, workerCount } from '../../config/worker-settings.ts';

/** The options of `serve`, as commander names them. */
export interface ServeOptions extends ListenerOptions {
  readonly config?: string;
  readonly upstream?: string;
  /** The name of the variable with the upstream's key. */
  readonly upstreamKeyEnv?: string;
}

/** The text of the config file; `null` when none is given. Throws `ConfigError`. */
export function readServeText(options: ServeOptions): string | null {
  const { config: file } = options;
  return file === undefined ? null : readConfigText(withoutUpstreamOptions(file, options));
}

/**
 * The config that `serve` puts into force: that of the file, whose text has been read, or else of the environment, with
 * the options' values instead of theirs. Throws `ConfigError`.
 */
export function loadServeConfig(
  options: ServeOptions,
  environment: Environment,
  text = readServeText(options),
): Config {
  const { config: file } = options;
  try {
    return file === undefined || text === null
      ? configWithoutFile(options, environment)
      : loadConfigFile(file, environment, options, text);
  } catch (error) {
    const isOfOptions =
      error instanceof ConfigError && error.problems.every((problem) => problem.startsWith('--'));
    throw isOfOptions ? new ConfigError('the command line', error.problems) : error;
  }
}

/** How the settings of an upstream are named in messages: as the operator wrote them. */
export function settingNamesFor({ config, upstream, upstreamKeyEnv }: ServeOptions): typeof namesInConfig {
  if (config !== undefined) return namesInConfig;
  const given = {
    ...(upstream === undefined ? {} : { url: '--upstream' }),
    ...(upstreamKeyEnv === undefined ? {} : { apiKey: upstreamKeyEnv }),
  };
  return () => ({ ...namesInEnvironment(), ...given });
}

/** The file, unless there are options that it would silently replace. */
function withoutUpstreamOptions(file: string, { upstream, upstreamKeyEnv }: ServeOptions): string {
  if (upstream === undefined && upstreamKeyEnv === undefined) return file;
  const given = upstream === undefined ? '--upstream-key-env' : '--upstream';
  throw new ConfigError('the command line', [
    `${given} can't be used with the config file ${file}, which names its upstreams itself: leave out one of the two (--config or TEXTGATE_CONFIG names the file)`,
  ]);
}

function configWithoutFile(options: ServeOptions, environment: Environment): Config {
  const { upstream, upstreamKeyEnv } = options;
  const key = upstreamKeyEnv === undefined ? undefined : readVariable(environment, upstreamKeyEnv);
  if (upstreamKeyEnv !== undefined && key === undefined)
    throw new ConfigError('the command line', [
      `--upstream-key-env: ${describeUnset(upstreamKeyEnv, environment)}`,
    ]);
  const given = {
    ...(upstream === undefined ? {} : { TEXTGATE_UPSTREAM_URL: upstream }),
    ...(key === undefined ? {} : { TEXTGATE_UPSTREAM_API_KEY: key }),
  };
  try {
    return environmentConfig({ ...environment, ...given }, options);
  } catch (error) {
    if (!(error instanceof ConfigError) || upstream === undefined) throw error;
    const problems = error.problems.map((problem) => problem.replace('TEXTGATE_UPSTREAM_URL', '--upstream'));
    throw new ConfigError('the command line', problems);
  }
}

/** How many workers are started. Throws if they can't share the database, whose URL may be in a file. */
export function sharedWorkerCount({ server, storage }: Config): number {
  const count = workerCount(server);
  if (server.workers !== 1 && !isSharedDatabase(storage.url))
    throw new ConfigError('the config', [`server.workers: ${needsSharedDatabase}`]);
  return count;
}

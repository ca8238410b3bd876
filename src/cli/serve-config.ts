import { readVariable } from '../config/environment.ts';
import type { Environment } from '../config/environment.ts';
import { listenerConflicts } from '../config/listener-conflicts.ts';
import { ConfigError, environmentConfig, loadConfigFile } from '../config/load.ts';
import type { Config } from '../config/schema/schema.ts';
import { namesInConfig, namesInEnvironment } from '../config/setting-names.ts';

/** The options of `serve`, as commander names them. */
export interface ServeOptions {
  readonly config?: string;
  readonly upstream?: string;
  /** The name of the variable with the upstream's key. */
  readonly upstreamKeyEnv?: string;
  readonly host?: string;
  readonly port?: number;
  readonly adminHost?: string;
  readonly adminPort?: number;
}

/**
 * The config that `serve` puts into force: that of the file, or else of the environment, with the options' values
 * instead of theirs. Throws `ConfigError`.
 */
export function loadServeConfig(options: ServeOptions, environment: Environment): Config {
  const { config: file, host, port, adminHost, adminPort } = options;
  const config =
    file === undefined
      ? configWithoutFile(options, environment)
      : loadConfigFile(withoutUpstreamOptions(file, options), environment);
  const chosen = {
    ...config,
    server: {
      ...config.server,
      ...(host === undefined ? {} : { host }),
      ...(port === undefined ? {} : { port }),
    },
    admin: {
      ...config.admin,
      ...(adminHost === undefined ? {} : { host: adminHost }),
      ...(adminPort === undefined ? {} : { port: adminPort }),
    },
  };
  const [conflict] = listenerConflicts(chosen);
  if (conflict !== undefined)
    throw new ConfigError('the command line', [`--admin-port: ${conflict.message}`]);
  return chosen;
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
  const [given] = [
    ...(upstream === undefined ? [] : ['--upstream']),
    ...(upstreamKeyEnv === undefined ? [] : ['--upstream-key-env']),
  ];
  if (given === undefined) return file;
  throw new ConfigError('the command line', [
    `${given} can't be used with the config file ${file}, which names its upstreams itself: leave out one of the two (--config or TEXTGATE_CONFIG names the file)`,
  ]);
}

function configWithoutFile({ upstream, upstreamKeyEnv }: ServeOptions, environment: Environment): Config {
  const key = upstreamKeyEnv === undefined ? undefined : readVariable(environment, upstreamKeyEnv);
  if (upstreamKeyEnv !== undefined && key === undefined)
    throw new ConfigError('the command line', [
      `--upstream-key-env: the environment variable ${upstreamKeyEnv} is not set`,
    ]);
  const given = {
    ...(upstream === undefined ? {} : { TEXTGATE_UPSTREAM_URL: upstream }),
    ...(key === undefined ? {} : { TEXTGATE_UPSTREAM_API_KEY: key }),
  };
  try {
    return environmentConfig({ ...environment, ...given });
  } catch (error) {
    if (!(error instanceof ConfigError) || upstream === undefined) throw error;
    const problems = error.problems.map((problem) => problem.replace('TEXTGATE_UPSTREAM_URL', '--upstream'));
    throw new ConfigError('the command line', problems);
  }
}

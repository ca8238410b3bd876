import { watchFile } from 'node:fs';
import { ConfigError } from '../config/load.ts';
import type { Config } from '../config/schema/schema.ts';
import type { LogDestination } from '../telemetry/log-destination.ts';
import { loadServeConfig } from './serve-config.ts';
import type { ServeOptions } from './serve-config.ts';

/** How often the config file is checked for changes, in milliseconds: polling finds every kind of replacement. */
const watchMs = 1_000;

/** What a config is put into force in: a gateway, or all workers of one. */
export interface Reloaded {
  /** Returns the settings that only a restart changes. Throws if the config can't be put into force. */
  replaceConfig(config: Config): readonly string[] | Promise<readonly string[]>;
  /** Reports a config that could not be put into force. */
  reloadFailed(error: unknown): void;
}

/** Reloads the config file on SIGHUP and when it changes. A bad file is reported, and the old config stays active. */
export function reloadOnChange(
  reloaded: Reloaded,
  file: string,
  options: ServeOptions,
  stderr: LogDestination,
): void {
  const reload = async (): Promise<void> => {
    try {
      const restart = await reloaded.replaceConfig(loadServeConfig(options, process.env));
      const later =
        restart.length === 0 ? '' : `; these changes count from the next start on: ${restart.join(', ')}`;
      stderr.write(`config reloaded: ${file}${later}\n`);
    } catch (error) {
      reloaded.reloadFailed(forRunningProcess(error, file));
    }
  };
  process.on('SIGHUP', () => void reload());
  watchFile(file, { interval: watchMs, persistent: false }, (now, before) => {
    if (now.mtimeMs !== before.mtimeMs) void reload();
  });
}

/** A running process never sees a variable that is set after its start. */
function forRunningProcess(error: unknown, file: string): unknown {
  if (!(error instanceof ConfigError)) return error;
  const problems = error.problems.map((problem) =>
    /environment variable .* is not set/.test(problem)
      ? `${problem}; a running process gets no new variables: set it and restart`
      : problem,
  );
  return new ConfigError(file, problems);
}

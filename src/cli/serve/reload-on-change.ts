import { promises } from 'node:fs';
import { systemClock } from '../../composition/clock.ts';
import { ConfigError } from '../../config/load.ts';
import type { Config } from '../../config/schema/schema.ts';
import type { LogDestination } from '../../telemetry/log/log-destination.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import { loadServeConfig, readServeText } from './serve-config.ts';
import type { ServeOptions } from './serve-config.ts';

/** What a config is put into force in: a gateway, or all workers of one. */
export interface Reloaded {
  /**
   * Puts the config of a file's text into force. Returns the settings that only a restart changes. Throws if it can't be
   * put into force.
   */
  replaceConfig(config: Config, text: string | null): readonly string[] | Promise<readonly string[]>;
  /** Reports a config that could not be put into force. */
  reloadFailed(error: unknown): void;
}

/** A config file, and the text of it that is in force now. */
export interface WatchedFile {
  readonly file: string;
  readonly since: string | null;
}

/** Reloads the config file on SIGHUP and when it changes. A bad file is reported, and the old config stays active. */
export function reloadOnChange(
  reloaded: Reloaded,
  { file, since }: WatchedFile,
  options: ServeOptions,
  stderr: LogDestination,
): void {
  const reload = async (found: string | null): Promise<void> => {
    try {
      // What could not be read is read again for the reason.
      const text = found ?? readServeText(options);
      watch.loaded(text);
      const restart = await reloaded.replaceConfig(loadServeConfig(options, process.env, text), text);
      const later =
        restart.length === 0 ? '' : `; these changes count from the next start on: ${restart.join(', ')}`;
      stderr.write(`config reloaded: ${file}${later}\n`);
    } catch (error) {
      reloaded.reloadFailed(forRunningProcess(error, file));
    }
  };
  const watch = watchConfigFile(file, since, systemClock, (text) => void reload(text));
  process.on('SIGHUP', () => void reload(null));
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

/** How often a config file is looked at, in milliseconds: polling finds every kind of replacement. */
const watchMs = 1_000;

/** The text of a file; `null` if it can't be read, `undefined` of what is no regular file: a pipe changes whenever it is read. */
type Found = string | null | undefined;

/** A config file that is looked at again and again. */
interface ConfigFileWatch {
  /** Notes that a text was loaded for another reason, such as a signal. */
  loaded(text: string | null): void;
}

/**
 * Calls back with each text of a file that two looks in a row have found and that is not the one in force, at first `since`:
 * the file may be half written at one look, and half of a config can be a good one, with some keys missing. `null` is a
 * file that can't be read. Times and sizes are no sign of a change: mounted volumes and package stores keep them.
 */
export function watchConfigFile(
  file: string,
  since: string | null,
  clock: Clock,
  onChange: (text: string | null) => void,
): ConfigFileWatch {
  let inForce = since;
  let last: Found = since;
  const look = async (): Promise<void> => {
    const found = await readFound(file);
    const isSettled = found === last;
    last = found;
    clock.schedule(watchMs, () => void look());
    if (found === undefined || !isSettled || found === inForce) return;
    inForce = found;
    onChange(found);
  };
  clock.schedule(watchMs, () => void look());
  return { loaded: (text) => void (inForce = text) };
}

async function readFound(file: string): Promise<Found> {
  try {
    return (await promises.stat(file)).isFile() ? await promises.readFile(file, 'utf8') : undefined;
  } catch {
    return null;
  }
}

import { changedFixedSettings } from '../../composition/fixed-settings.ts';
import { reloadCommandsMs } from '../../composition/upstreams/upstream-files.ts';
import { keySourceOf } from '../../composition/upstreams/upstream-keys.ts';
import type { Config } from '../../config/schema/schema.ts';
import type { WorkerProcess } from './fork-worker.ts';
import { workerAnswerMs } from './messages.ts';

/** A config, and the text of the file that it was read from; `null` when there is no file. */
export interface ConfigWithText {
  readonly config: Config;
  readonly text: string | null;
}

/** The workers of a gateway, as `Fleet` has them. */
export interface WorkersInForce {
  /** All of them, also those that are starting or ending. */
  readonly alive: readonly WorkerProcess[];
  /** Those that are not to end. */
  readonly serving: readonly WorkerProcess[];
}

/**
 * The config that all workers of a gateway have. A worker that starts gets its text, and not what the file has by then:
 * that may be another config than the others have, or one that can't be used.
 */
export class ConfigInForce {
  readonly #first: Config;
  #current: ConfigWithText;
  #lastReplacement: Promise<unknown> = Promise.resolve();

  constructor(first: ConfigWithText) {
    this.#first = first.config;
    this.#current = first;
  }

  get config(): Config {
    return this.#current.config;
  }

  get text(): string | null {
    return this.#current.text;
  }

  /**
   * Puts a config into force in all workers, after the replacements that have begun. Returns the settings that only a
   * restart changes. Throws the reason of a worker that could not put it into force: all have the previous one then.
   */
  replace(replacement: ConfigWithText, workers: WorkersInForce): Promise<readonly string[]> {
    const replaced = this.#lastReplacement.then(() => this.#replaceNow(replacement, workers));
    this.#lastReplacement = replaced.catch(() => {});
    return replaced;
  }

  async #replaceNow(next: ConfigWithText, workers: WorkersInForce): Promise<readonly string[]> {
    const previous = this.#current;
    // Before the workers are told: one that is started from now on is not among them.
    this.#current = next;
    const reason = await reloadAll(next, workers, true);
    if (reason === null) return changedFixedSettings(this.#first, next.config);
    this.#current = previous;
    await reloadAll(previous, workers, false);
    throw new Error(reason);
  }
}

/**
 * Has all workers put the config of a text into force; returns the reason of one that can't. One that does not answer in
 * time has the text among its messages: it follows as soon as it goes on.
 */
async function reloadAll(
  { config, text }: ConfigWithText,
  { alive, serving: [counter] }: WorkersInForce,
  isCounted: boolean,
): Promise<string | null> {
  const withinMs = workerAnswerMs + (hasCommands(config) ? reloadCommandsMs : 0);
  const reasons = await Promise.all(
    alive.map((worker) =>
      worker.ask({ name: 'reload', text, isCounted: isCounted && worker === counter }, withinMs),
    ),
  );
  return reasons.find((reason) => typeof reason === 'string') ?? null;
}

/** Whether a worker may have to run commands first: one that fails late must not leave the workers with different configs. */
function hasCommands({ upstreams }: Config): boolean {
  return Object.values(upstreams).some((upstream) => keySourceOf(upstream)?.kind === 'command');
}

import { promises } from 'node:fs';
import type { Clock } from '../../domain/ports/clock.ts';

/** How often a config file is looked at, in milliseconds: polling finds every kind of replacement. */
const watchMs = 1_000;

/** The text of a file; `null` if it can't be read, `undefined` of what is no regular file: a pipe changes whenever it is read. */
type Found = string | null | undefined;

/** A config file that is looked at again and again. */
export interface ConfigFileWatch {
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

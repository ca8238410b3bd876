import { promises, statSync } from 'node:fs';
import type { BigIntStats } from 'node:fs';
import type { Clock } from '../../domain/ports/clock.ts';

/** How often a config file is checked for changes, in milliseconds: polling finds every kind of replacement. */
const watchMs = 1_000;

/** What a file was when it was looked at; another value than before means that it may have changed. */
export type FileState = string;

const missing: FileState = 'missing';

/** The state of a file. Taken before the file is read, it makes every change since the reading show. */
export function stateOfFile(file: string): FileState {
  try {
    return describeStats(statSync(file, { bigint: true }));
  } catch {
    return missing;
  }
}

/**
 * Calls back each time a file's state is found to be another one than before, at first another one than `since`. Without
 * `since`, a change between the reading of the file and the first look would never be seen.
 */
export function watchConfigFile(file: string, since: FileState, clock: Clock, onChange: () => void): void {
  let last = since;
  const look = async (): Promise<void> => {
    const state = await promises.stat(file, { bigint: true }).then(describeStats, () => missing);
    const isChanged = state !== last;
    last = state;
    clock.schedule(watchMs, () => void look());
    if (isChanged) onChange();
  };
  clock.schedule(watchMs, () => void look());
}

/** A pipe changes whenever it is read. Inode numbers are no sign of a change: some network file systems renumber. */
function describeStats(stats: BigIntStats): FileState {
  return stats.isFile() ? `${stats.mtimeNs} ${stats.size}` : 'no regular file';
}

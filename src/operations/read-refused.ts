import type { Clock } from '../domain/ports/clock.ts';
import type { RefusedByLimit, Refusals } from '../domain/ports/refusals.ts';

const dayMs = 86_400_000;

/** Reads how many requests of some keys this gateway's limits have refused today, in UTC, by the keys' ids. */
export type ReadRefused = (keyIds: readonly string[]) => Promise<ReadonlyMap<string, RefusedByLimit>>;

export function createReadRefused(refusals: Pick<Refusals, 'ofDay'>, clock: Pick<Clock, 'now'>): ReadRefused {
  return (keyIds) => refusals.ofDay(keyIds, Math.floor(clock.now() / dayMs) * dayMs);
}

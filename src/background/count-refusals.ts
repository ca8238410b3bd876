import type { ExchangeSummary } from '../domain/exchange-summary.ts';
import { ownLimitOf } from '../domain/limits/limits.ts';
import type { Refusals, RefusedRequests } from '../domain/ports/refusals.ts';
import { repeat } from './repeat.ts';
import type { TaskPorts } from './repeat.ts';

/** How often counts are added to the sums in the database, in milliseconds. */
const addMs = 5_000;

/** How many counts are added in one unit. */
const addedAtOnce = 500;

/** How many counts wait for a database that is away at most: refusals by further keys or limits are not counted then. */
const maxWaiting = 20_000;

const dayMs = 86_400_000;

/** Counts the requests that this gateway's own limits refuse, by key and limit. */
export interface RefusalCounter {
  /** A sink of the pipeline's reports. */
  readonly exchangeEnded: (summary: Pick<ExchangeSummary, 'keyId' | 'refusal'>) => void;
  /** Resolves when what was counted is added, or could not be. */
  stop(): Promise<void>;
}

/**
 * Counts refusals in memory, and adds the counts to the sums in the database every few seconds. What the database does not
 * take is offered again: where it took a unit whose answer was lost, that unit counts twice.
 */
export function countRefusals(
  refusals: Pick<Refusals, 'add'>,
  { ready, clock, onFault }: TaskPorts,
): RefusalCounter {
  const stopping = new AbortController();
  const { signal } = stopping;
  let waiting = new Map<string, RefusedRequests>();
  let uncounted = 0;

  const count = (refused: RefusedRequests): void => {
    const name = `${refused.dayMs} ${refused.keyId} ${refused.limit}`;
    const requests = (waiting.get(name)?.requests ?? 0) + refused.requests;
    if (requests === refused.requests && waiting.size >= maxWaiting) uncounted += requests;
    else waiting.set(name, { ...refused, requests });
  };

  const add = async (): Promise<void> => {
    const taken = [...waiting.values()];
    waiting = new Map();
    for (let at = 0; at < taken.length; at += addedAtOnce)
      try {
        await refusals.add(taken.slice(at, at + addedAtOnce));
      } catch (error) {
        onFault('refused requests could not be added to the sums of their keys', error);
        taken.slice(at).forEach(count);
        break;
      }
    if (uncounted > 0)
      onFault('refused requests not counted for their keys', 'too many counts wait', { count: uncounted });
    uncounted = 0;
  };

  let adding: (() => Promise<void>) | null = null;
  const start = (): void => {
    if (!signal.aborted) adding = repeat(add, { firstMs: addMs, delayMs: addMs }, clock, signal);
  };
  ready.then(start, () => {});
  return {
    exchangeEnded({ keyId, refusal }) {
      if (keyId === null || refusal === null) return;
      const limit = ownLimitOf(refusal);
      if (limit !== null)
        count({ dayMs: Math.floor(clock.now() / dayMs) * dayMs, keyId, limit, requests: 1 });
    },
    async stop() {
      stopping.abort(new Error('the count of refusals is stopping'));
      await adding?.();
      if (adding !== null) await add();
    },
  };
}

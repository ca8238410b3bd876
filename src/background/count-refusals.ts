import type { ExchangeSummary } from '../domain/exchange-summary.ts';
import { ownLimitOf } from '../domain/limits/limits.ts';
import type { Refusals, RefusedRequests } from '../domain/ports/refusals.ts';
import { dayOf } from '../shared/duration.ts';
import { repeatTask } from './repeat.ts';
import type { TaskPorts } from './repeat.ts';

/** How often counts are added to the sums in the database, in milliseconds. */
const addMs = 5_000;

/** How many counts are added in one unit. */
const addedAtOnce = 500;

/** How many counts wait for a database that is away at most: refusals by further keys or limits are not counted then. */
const maxWaiting = 20_000;

/**
 * Counts the requests that this gateway's own limits refuse, by key and limit: in memory, and adds the counts to the sums in the
 * database every few seconds. What the database does not take is offered again: where it took a unit whose answer was lost, that
 * unit counts twice.
 */
export function countRefusals(refusals: Pick<Refusals, 'add'>, ports: TaskPorts) {
  const { clock, onFault } = ports;
  let waiting = new Map<string, RefusedRequests>();
  let uncounted = 0;

  const count = (refused: RefusedRequests): void => {
    const name = `${refused.dayMs} ${refused.keyId} ${refused.limit}`;
    const requests = (waiting.get(name)?.requests ?? 0) + refused.requests;
    if (requests === refused.requests && waiting.size >= maxWaiting) uncounted += requests;
    else waiting.set(name, { ...refused, requests });
  };

  const failure = 'refused requests could not be added to the sums of their keys';
  const add = async (): Promise<void> => {
    const taken = [...waiting.values()];
    waiting = new Map();
    for (let at = 0; at < taken.length; at += addedAtOnce)
      try {
        await refusals.add(taken.slice(at, at + addedAtOnce));
      } catch (error) {
        onFault(failure, error);
        taken.slice(at).forEach(count);
        break;
      }
    if (uncounted > 0)
      onFault('refused requests not counted for their keys', 'too many counts wait', { count: uncounted });
    uncounted = 0;
  };

  const task = repeatTask(ports, { firstMs: addMs, delayMs: addMs, failure }, add);
  return {
    /** A sink of the pipeline's reports. */
    exchangeEnded({ keyId, refusal }: Pick<ExchangeSummary, 'keyId' | 'refusal'>): void {
      if (keyId === null || refusal === null) return;
      const limit = ownLimitOf(refusal);
      if (limit !== null) count({ dayMs: dayOf(clock.now()), keyId, limit, requests: 1 });
    },
    /** Resolves when what was counted is added, or could not be. */
    async stop(): Promise<void> {
      await task.stop();
      if (task.hasBegun) await add();
    },
  };
}

import { exposeSum, sumCounts } from '../../telemetry/metrics/metric-sums.ts';
import type { MetricsText } from '../../telemetry/metrics/metric-sums.ts';
import type { WorkerProcess } from './fork-worker.ts';
import type { Answer } from './messages.ts';

/** What each worker says of itself, as a list in JSON. One that does not answer in time is left out. */
export async function allAnswers(
  workers: readonly Pick<WorkerProcess, 'ask'>[],
  name: 'status' | 'views',
): Promise<string> {
  const told = await Promise.all(workers.map((worker) => worker.ask({ name })));
  return `[${told.filter((text) => typeof text === 'string').join(',')}]`;
}

/** Why none of the workers can take requests; nothing as soon as one says that it can, however long the others take to answer. */
export async function whyNoWorkerReady(workers: readonly Pick<WorkerProcess, 'ask'>[]): Promise<Answer> {
  const { promise: anyReady, resolve } = Promise.withResolvers<null>();
  const reasons = workers.map(async (worker) => {
    const reason = await worker.ask({ name: 'why not ready' });
    if (reason === null) resolve(null);
    return reason;
  });
  const noneReady = Promise.all(reasons).then(
    (all) => all.find((reason) => typeof reason === 'string') ?? 'no answer',
  );
  return Promise.race([anyReady, noneReady]);
}

/** The metrics of all workers as those of one process. */
interface AllMetrics {
  /** The exposition of their sum. */
  expose(): Promise<string>;
  /** Keeps what a worker has counted: a sum that became smaller would be read as a new start of all counters. */
  ended(worker: WorkerProcess): void;
}

/** Adds up the metrics of the `alive` workers, and of those that have ended. */
export function createAllMetrics(alive: () => readonly WorkerProcess[]): AllMetrics {
  /** What each worker has counted as far as it said. */
  const known = new Map<WorkerProcess, MetricsText>();
  let ended: Promise<MetricsText | null> = Promise.resolve(null);
  return {
    async expose() {
      const workers = alive();
      await Promise.all(
        workers.map(async (worker) => {
          const figures = await worker.ask({ name: 'figures' });
          if (typeof figures === 'string' && alive().includes(worker)) known.set(worker, figures);
        }),
      );
      // One that does not answer in time keeps the figures of the scrape before.
      return exposeSum([...known.values()], await ended);
    },
    ended(worker) {
      const figures = worker.lastFigures ?? known.get(worker);
      known.delete(worker);
      if (figures === undefined) return;
      ended = ended.then((sum) => sumCounts(sum === null ? [figures] : [sum, figures]));
    },
  };
}

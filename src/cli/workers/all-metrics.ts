import { exposeSum, sumCounts } from '../../telemetry/metrics/metric-sums.ts';
import type { MetricsText } from '../../telemetry/metrics/metric-sums.ts';
import type { WorkerProcess } from './fork-worker.ts';

/** The metrics of all workers as those of one process. */
export interface AllMetrics {
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

import type { Clock } from '../../domain/ports/clock.ts';
import type { WorkerProcess } from './fork-worker.ts';

/** How often each worker is asked for a sign of life, in milliseconds. */
const askEveryMs = 5_000;

/**
 * After how many questions without an answer a worker is killed: for half a minute, twice as long as its lease, so that its
 * slots are others' by then. Counted rather than timed: if this process stood still, that is one question.
 */
const maxUnanswered = 6;

/**
 * Kills workers that have taken requests and do not answer any more, as in an endless loop: their clients would wait for ever,
 * and probes, which the others answer, would not show it.
 */
export function killHanging(
  workers: () => readonly WorkerProcess[],
  clock: Clock,
  onHanging: (worker: WorkerProcess, silentMs: number) => void,
): void {
  const unanswered = new WeakMap<WorkerProcess, number>();
  const check = async (worker: WorkerProcess): Promise<void> => {
    if ((await worker.ask({ name: 'alive' })) !== undefined) return void unanswered.delete(worker);
    const count = (unanswered.get(worker) ?? 0) + 1;
    unanswered.set(worker, count);
    if (count !== maxUnanswered || !workers().includes(worker)) return;
    onHanging(worker, maxUnanswered * askEveryMs);
    worker.kill();
  };
  const checkAll = (): void => {
    for (const worker of workers()) if (worker.hasStarted) void check(worker);
    clock.schedule(askEveryMs, checkAll);
  };
  clock.schedule(askEveryMs, checkAll);
}

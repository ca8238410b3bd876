import type { Clock } from '../../domain/ports/clock.ts';
import type { WorkerProcess } from './fork-worker.ts';

/** How often each worker is asked for a sign of life, in milliseconds. */
const askEveryMs = 5_000;

/**
 * After how many questions without a sign of life a worker is killed: for half a minute, twice as long as its lease, so that
 * its slots are others' by then. Counted rather than timed: if this process stood still, that is one question.
 */
const maxUnanswered = 6;

/** What is known of a worker that was asked. */
interface Asked {
  /** How many messages it had sent when it was asked last. */
  sentMessages: number;
  /** How many questions in a row it has left without any message since. */
  unanswered: number;
}

/**
 * Kills workers that have taken requests and say nothing any more, as in an endless loop: their clients would wait for ever,
 * and probes, which the others answer, would not show it. A message that comes late is a sign of life, too: a slow worker is
 * none that hangs. A kill that did not end the worker is tried again, and told once.
 */
export function killHanging(
  workers: () => readonly WorkerProcess[],
  clock: Clock,
  onHanging: (worker: WorkerProcess, silentMs: number) => void,
): void {
  const known = new WeakMap<WorkerProcess, Asked>();
  const check = (worker: WorkerProcess): void => {
    const { sentMessages } = worker;
    const asked = known.get(worker);
    if (asked?.sentMessages !== sentMessages) known.set(worker, { sentMessages, unanswered: 0 });
    else if (++asked.unanswered >= maxUnanswered) {
      if (asked.unanswered === maxUnanswered) onHanging(worker, maxUnanswered * askEveryMs);
      return worker.kill();
    }
    void worker.ask({ name: 'alive' });
  };
  const checkAll = (): void => {
    for (const worker of workers()) if (worker.hasStarted) check(worker);
    clock.schedule(askEveryMs, checkAll);
  };
  clock.schedule(askEveryMs, checkAll);
}

import type { Clock } from '../../domain/ports/clock.ts';
import type { ReportFault } from '../../domain/ports/telemetry.ts';
import type { DatabaseThread } from './thread.ts';

/** The delay before a dead thread is started again, in milliseconds; it doubles with every death in a row. */
const firstRestartMs = 100;
const maxRestartMs = 5_000;

/** The age from which a thread's death counts as the first in a row, in milliseconds. */
const soundAgeMs = 60_000;

/** The thread that only reads. It is started again whenever it dies. */
export interface Reader {
  /** The current thread; `null` between a death and the restart. */
  readonly thread: DatabaseThread | null;
  close(): Promise<void>;
}

/** Keeps a reader thread alive. `start` returns `null` while there is no database to read, and is called again later. */
export function keepReader(start: () => DatabaseThread | null, clock: Clock, onFault: ReportFault): Reader {
  let restartMs = firstRestartMs;
  let cancel: (() => void) | null = null;
  let closing = false;
  let thread: DatabaseThread | null = null;
  begin();

  function begin(): void {
    thread = start();
    if (thread === null) return beginLater();
    const startedMs = clock.monotonicMs();
    void thread.ended.then((reason) => {
      thread = null;
      if (closing) return;
      onFault('the thread that reads the database died and is started again', reason);
      if (clock.monotonicMs() - startedMs >= soundAgeMs) restartMs = firstRestartMs;
      beginLater();
    });
  }
  function beginLater(): void {
    cancel = clock.schedule(restartMs, begin);
    restartMs = Math.min(restartMs * 2, maxRestartMs);
  }
  return {
    get thread() {
      return thread;
    },
    async close() {
      closing = true;
      cancel?.();
      await thread?.close();
    },
  };
}

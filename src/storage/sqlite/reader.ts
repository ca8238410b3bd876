import type { Clock } from '../../domain/ports/clock.ts';
import type { ReportFault } from '../../domain/ports/telemetry.ts';
import type { DatabaseThread } from './thread.ts';

/** How long a thread that died is left before it is started again, in milliseconds: doubled with every death in a row. */
const firstRestartMs = 100;
const maxRestartMs = 5_000;

/** A thread that has lived for so long was sound, in milliseconds: its death is the first in a row. */
const soundMs = 60_000;

/** The thread that only reads. It is started again whenever it dies. */
export interface Reader {
  /** The thread of now; `null` between a death and the restart. */
  readonly thread: DatabaseThread | null;
  close(): Promise<void>;
}

/** `start` returns `null` while there is nothing to be read: it is called again later. */
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
      if (clock.monotonicMs() - startedMs >= soundMs) restartMs = firstRestartMs;
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

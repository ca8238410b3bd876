import { StorageError } from '../../domain/storage-refusal.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import type { ReportFault } from '../../domain/ports/telemetry.ts';
import type { FileIds } from './file-ids.ts';
import type { DatabaseThread } from './thread.ts';

/** A thread that dies within this time after a restart is not started again, in milliseconds. */
const restartWindowMs = 600_000;

/** The thread that writes. It is started again once if it dies. */
export interface Writer {
  /** The current thread. */
  readonly thread: DatabaseThread;
  /** Why nothing can be written any more; `null` while it can. */
  readonly broken: Error | null;
  /** Resolves with the reason when a database that was open can't be written any more. */
  readonly lost: Promise<Error>;
  /** Ends the thread, which is no death from now on; resolves with the path of a rescued database. */
  close(rescue: boolean): Promise<string | null>;
}

interface WriterTools {
  readonly start: () => DatabaseThread;
  /** Whether a new thread would open the database of the old one. */
  readonly canRestart: () => boolean;
  readonly onOpened: (files: FileIds | null) => void;
  readonly clock: Clock;
  readonly onFault: ReportFault;
}

/** Keeps a writer thread alive, as far as that is safe. */
export function keepWriter({ start, canRestart, onOpened, clock, onFault }: WriterTools): Writer {
  const lost = Promise.withResolvers<Error>();
  let broken: Error | null = null;
  let diedMs = Number.NEGATIVE_INFINITY;
  let wasOpen = false;
  let closing = false;
  let thread = begin();

  function begin(): DatabaseThread {
    const started = start();
    started.opened.then(
      (files) => {
        wasOpen = true;
        onOpened(files);
      },
      () => {},
    );
    void started.ended.then(died);
    return started;
  }
  function died(reason: StorageError): void {
    if (closing) return;
    const nowMs = clock.monotonicMs();
    if (wasOpen && nowMs - diedMs >= restartWindowMs && canRestart()) {
      diedMs = nowMs;
      onFault('the database thread died and is started again', reason);
      thread = begin();
    } else {
      broken = reason;
      if (!wasOpen) return;
      onFault('the database thread died and can not be started again', reason);
      lost.resolve(reason);
    }
  }
  return {
    get thread() {
      return thread;
    },
    get broken() {
      return broken;
    },
    lost: lost.promise,
    async close(rescue) {
      closing = true;
      broken ??= new StorageError('the database is closed', 'closed');
      return thread.close(rescue);
    },
  };
}

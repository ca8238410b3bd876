import type { Clock } from '../domain/ports/clock.ts';
import { within } from '../domain/within.ts';

/** How long the answer of a probe may wait for the database, in milliseconds. */
const deadlineMs = 1_000;

/** How long the last check counts, in milliseconds: probes more often than that make no writes. */
const intervalMs = 1_000;

/** Records whose database can be tried. */
interface CheckedRecords {
  /** Makes a write; rejects when the database does not take it. */
  checkWrites(): Promise<void>;
  /** Why the database takes no writes, as the last ones tell; `null` when it does. */
  readonly writeFault: string | null;
}

/** Whether the database takes writes, found out by one. */
export interface WriteCheck {
  /** Why it takes none, in words that name no file; `null` when it does. Resolves within a second. */
  fault(): Promise<string | null>;
}

/**
 * Finds a full or locked disk on a service that has nothing else to write, and finds it well again. `onChange` is
 * called when the database stops or begins to take writes, not for every probe.
 */
export function createWriteCheck(
  records: CheckedRecords,
  clock: Clock,
  onChange: (fault: string | null) => void,
): WriteCheck {
  let startedMs = Number.NEGATIVE_INFINITY;
  let underWay: Promise<void> | null = null;
  let told: string | null = null;

  const start = (): Promise<void> => {
    startedMs = clock.monotonicMs();
    // How it went is in `writeFault`.
    return records.checkWrites().then(
      () => void (underWay = null),
      () => void (underWay = null),
    );
  };
  return {
    async fault() {
      if (underWay === null && clock.monotonicMs() - startedMs >= intervalMs) underWay = start();
      const leftMs = Math.max(0, startedMs + deadlineMs - clock.monotonicMs());
      const inTime = underWay === null || (await within(underWay, leftMs, clock));
      const fault = records.writeFault ?? (inTime ? null : 'it takes too long to answer');
      if ((fault === null) !== (told === null)) onChange(fault);
      told = fault;
      return fault;
    },
  };
}

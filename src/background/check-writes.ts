import type { Clock } from '../domain/ports/clock.ts';
import { within } from '../domain/time-limit.ts';

/** How long a probe waits for the database, in milliseconds. */
const deadlineMs = 1_000;

/** How long the result of a check is used, in milliseconds: more frequent probes make no further writes. */
const intervalMs = 1_000;

/** Records whose database can be checked by a write. */
interface CheckedRecords {
  /** Makes a write; rejects when the database does not take it. */
  checkWrites(): Promise<void>;
  /** Why the database takes no writes, judged by the last ones; `null` when it does. */
  readonly writeFault: string | null;
}

/**
 * Checks whether the database takes writes, by making one: so a full or locked disk, and its recovery, are detected on a service
 * without other writes. `onChange` is called when the database stops or begins to take writes, not for every probe.
 */
export function createWriteCheck(
  records: CheckedRecords,
  clock: Clock,
  onChange: (fault: string | null) => void,
) {
  let startedMs = Number.NEGATIVE_INFINITY;
  let underWay: Promise<void> | null = null;
  let reported: string | null = null;

  const start = (): Promise<void> => {
    startedMs = clock.monotonicMs();
    // The outcome is in `writeFault`.
    return records
      .checkWrites()
      .catch(() => {})
      .finally(() => (underWay = null));
  };
  return {
    /** Why it takes none, in words that name no file; `null` when it does. Resolves within a second. */
    async fault(): Promise<string | null> {
      if (underWay === null && clock.monotonicMs() - startedMs >= intervalMs) underWay = start();
      const leftMs = Math.max(0, startedMs + deadlineMs - clock.monotonicMs());
      const inTime = underWay === null || (await within(underWay, leftMs, clock));
      const fault = records.writeFault ?? (inTime ? null : 'it takes too long to answer');
      if ((fault === null) !== (reported === null)) onChange(fault);
      reported = fault;
      return fault;
    },
  };
}

import type { OpenRecords } from '../domain/ports/records.ts';

/**
 * How old an own open record must be before it can be an orphan, in milliseconds: its request may not be registered yet.
 * One that is begun as far in the future was begun before this process's clock was set back.
 */
const minAgeMs = 10_000;

/**
 * Closes open records that no process will settle: those of this process without a request, as when the database failed
 * a unit that it had committed, and those of owners without a lease. The hold goes back, and nothing is charged.
 * `isPending` says whether the request still runs here, or its settlement waits for the database. Returns how many were
 * closed.
 */
export async function sweepOrphans(
  records: OpenRecords,
  isPending: (requestId: string) => boolean,
  nowMs: number,
): Promise<number> {
  const closable = await records.listClosable(nowMs - minAgeMs, nowMs + minAgeMs);
  const orphans = closable.filter((requestId) => !isPending(requestId));
  return orphans.length === 0 ? 0 : records.closeAsLost(orphans);
}

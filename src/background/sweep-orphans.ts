import type { SettledRecord } from '../domain/consumption.ts';

/** How old an open record must be before it can be an orphan, in milliseconds: it may be on its way into the registry. */
const minAgeMs = 10_000;

/** The records, as the sweep sees them. */
export interface OpenRecords {
  /** The ids of the open records that were begun before a time (milliseconds since 1970). */
  listOpen(before: number): Promise<readonly string[]>;
  settle(record: SettledRecord): Promise<void>;
}

/**
 * Closes open records that nobody will settle any more, as when a database said no after it had said yes: the hold goes
 * back, and nothing is charged. `isKnown` tells whether a request still runs here, or its settlement waits for the
 * database. Returns how many there were.
 */
export async function sweepOrphans(
  records: OpenRecords,
  isKnown: (requestId: string) => boolean,
  now: number,
): Promise<number> {
  const open = await records.listOpen(now - minAgeMs);
  const orphans = open.filter((requestId) => !isKnown(requestId));
  for (const requestId of orphans) await records.settle(lost(requestId));
  return orphans.length;
}

function lost(requestId: string): SettledRecord {
  return {
    requestId,
    outcome: 'lost',
    upstream: null,
    attempts: [],
    status: 500,
    usage: null,
    usageSource: 'none',
    price: null,
    chargeNanos: 0,
    firstTextMs: null,
    totalMs: 0,
  };
}

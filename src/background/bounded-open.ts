import { TimeLimit } from '../domain/limits/time-limit.ts';
import type { Wait } from '../domain/limits/time-limit.ts';
import type { OpenedRecord, Reservation } from '../domain/money/consumption.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { Records } from '../domain/ports/records.ts';
import { StorageError } from '../domain/storage-refusal.ts';
import type { WriteHealth } from './write-health.ts';

/** How long a request waits for its record to be begun before it is refused, in milliseconds. */
const openLimitMs = 10_000;

/** What the bounds need. */
interface OpenTools {
  readonly clock: Clock;
  readonly health: WriteHealth;
  /** Resolves when records may be begun; rejects when they never can be. */
  readonly recovered: Promise<void>;
  /** Whether the database is lost: a record that is begun now could be gone with the process. */
  readonly isLost: () => boolean;
}

/**
 * Begins records, and refuses a request whose database does not answer: a waiting request would hold its slot and its
 * memory, and no cancellation could end it. While the database is stuck and a write is under way, that write is the probe;
 * without one, the next record is. A record that is begun after its request was refused is closed by the sweep, which
 * gives its hold back.
 */
export function boundOpens(
  open: Records['open'],
  { clock, health, recovered, isLost }: OpenTools,
): Records['open'] {
  const limit = new TimeLimit(openLimitMs, clock, tooSlow);
  const begin = async (record: OpenedRecord, wait: Wait): Promise<Reservation> => {
    await recovered;
    if (wait.isOver) throw tooSlow();
    if (isLost()) throw new StorageError('the database is lost: no record is begun in it');
    if (health.isStuck && health.isWriting)
      throw health.error === null ? tooSlow() : stillFailing(health.error);
    return health.observe(open(record), record.keyId);
  };
  return (record) => limit.bound((wait) => begin(record, wait));
}

/** What failed the last write is why no other is begun while the next one is under way. */
function stillFailing({ message, reason }: StorageError): StorageError {
  return new StorageError(
    `the last write failed, and whether the next one does is not known yet: ${message}`,
    reason,
  );
}

function tooSlow(): StorageError {
  return new StorageError('the database takes too long to begin a record', 'slow');
}

import type { Pause } from '../domain/pause.ts';
import type { Claims } from '../domain/ports/claims.ts';
import type { RecordArchive, Retention } from '../domain/ports/retention.ts';
import { removeOldRecords } from '../operations/remove-records.ts';
import type { Removal } from '../operations/remove-records.ts';
import { dayOf } from '../shared/duration.ts';
import { isOurs, repeatTask } from './repeat.ts';
import type { DutyOfOne, TaskPorts } from './repeat.ts';

/** How long after the start, and how often, old records are removed, in milliseconds. */
const firstMs = 10_000;
const removeMs = 3_600_000;

/** How long claims are known that have ended, in milliseconds. */
const claimsKeptMs = 86_400_000;

/** What the config in force says of old records. */
export interface RetentionSettings {
  /** How long records are kept, in milliseconds; `null` for ever. */
  readonly keepMs: number | null;
  readonly archive: RecordArchive | null;
}

interface RemoverOptions extends TaskPorts {
  readonly settings: () => RetentionSettings;
  readonly duty: DutyOfOne;
  readonly claims: Pick<Claims, 'removeClaims'>;
  /** Removes old lines of the audit. */
  readonly removeLines: (pause: Pause) => Promise<unknown>;
  readonly onRemoved: (count: number) => void;
  /** Called after each run that removed or folded anything, with the time before which it did. */
  readonly onRun: (removal: Removal, beforeMs: number) => void;
}

/** The time before which records are old: a midnight in UTC, so that an archive has whole days. */
export function oldBefore(nowMs: number, keepMs: number): number {
  return dayOf(nowMs - keepMs);
}

/**
 * Removes records and lines of the audit that are older than the config says, and claims that ended a day ago, every hour, and
 * finds the oldest record that is left.
 */
export function keepRemoving(retention: Retention, options: RemoverOptions) {
  const { clock, settings, duty, claims, removeLines, onRemoved, onRun } = options;
  let oldestRecordMs: number | null = null;
  const failure = 'old records could not be removed: it is tried again in an hour';
  const { stop } = repeatTask(options, { firstMs, delayMs: removeMs, failure }, async (_signal, pause) => {
    if (!(await isOurs(duty))) return void (oldestRecordMs = null);
    await claims.removeClaims(clock.now() - claimsKeptMs);
    await removeLines(pause);
    const { keepMs, archive } = settings();
    if (keepMs !== null) {
      const beforeMs = oldBefore(clock.now(), keepMs);
      const removal = await removeOldRecords(retention, { beforeMs, archive, pause, onRemoved });
      if (removal.records + removal.postings > 0) onRun(removal, beforeMs);
    }
    oldestRecordMs = await retention.oldestRecord();
  });
  return {
    /** The age of the oldest record, in milliseconds; `null` without any, and where another process removes them. */
    oldestRecordAgeMs: (): number | null =>
      oldestRecordMs === null ? null : Math.max(0, clock.now() - oldestRecordMs),
    stop,
  };
}

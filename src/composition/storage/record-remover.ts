import { keepRemoving, oldBefore } from '../../background/remove-old-records.ts';
import type { RecordRemover, RetentionSettings } from '../../background/remove-old-records.ts';
import type { Config } from '../../config/schema/schema.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import { isoTime } from '../../http/present/iso-time.ts';
import { writeArchivedRecord } from '../../http/present/archived-record.ts';
import { createArchiving } from '../../operations/archive-records.ts';
import type { RecordArchiving } from '../../operations/archive-records.ts';
import { createArchiveFolder } from '../../storage/archive-folder.ts';
import type { Log } from '../../telemetry/log/logger.ts';
import type { Metrics } from '../../telemetry/metrics/metrics.ts';
import type { StorageServices } from './storage-services.ts';

/** What a config says of old records. */
export function retentionOf({ keep, archive }: Config['records']): RetentionSettings {
  const folder = archive === undefined ? null : createArchiveFolder(archive, writeArchivedRecord);
  return { keepMs: keep ?? null, archive: folder };
}

/** What the end of old records works with. */
interface RemovalTools {
  readonly settings: () => RetentionSettings;
  readonly clock: Clock;
  readonly log: Pick<Log, 'fault' | 'notice'>;
  readonly metrics: Pick<Metrics, 'recordsRemoved'>;
}

/** Removes old records; of processes that share them, one removes for all. */
export function removeOld(
  { retention, recovered, shared }: StorageServices,
  { settings, clock, log, metrics }: RemovalTools,
): RecordRemover {
  return keepRemoving(retention, {
    ready: recovered,
    clock,
    settings,
    duty: shared?.removalDuty ?? null,
    onRemoved: (count) => metrics.recordsRemoved(count),
    onRun: (removal, beforeMs) =>
      log.notice('old records removed', { ...removal, before: isoTime(beforeMs) }),
    onFault: log.fault,
  });
}

/** What operators do with old records. */
export function composeArchiving(
  { retention }: StorageServices,
  { settings, clock, metrics }: RemovalTools,
): RecordArchiving {
  return createArchiving(retention, {
    clock,
    oldBefore() {
      const { keepMs } = settings();
      return keepMs === null ? null : oldBefore(clock.now(), keepMs);
    },
    onRemoved: (count) => metrics.recordsRemoved(count),
  });
}

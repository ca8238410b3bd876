import type { Clock } from '../../../domain/ports/clock.ts';
import type { ReportFault } from '../../../domain/ports/telemetry.ts';
import { sumFaults } from '../../../domain/summed-fault.ts';
import { dropEmptyPartitions } from './drop-partitions.ts';
import { createRecordPartitions } from './record-partitions.ts';
import type { Send } from './record-partitions.ts';

/** How often partitions are created, and those without rows dropped, and how soon again after a fault, in milliseconds. */
const createMs = 3_600_000;
const retryMs = 60_000;

/** The keeping of partitions for this month and the next one. */
export interface PartitionKeeper {
  /** Creates them for the first time, and goes on from then. Never rejects: rows without a partition are kept, too. */
  start(send: Send): Promise<void>;
  stop(): void;
}

/** Keeps partitions of the records ahead of the time, and drops those of months that were removed. */
export function keepPartitions(send: Send, clock: Clock, onFault: ReportFault): PartitionKeeper {
  const failed = sumFaults(
    'the partitions of this month and the next one could not be created',
    onFault,
    clock,
  );
  const notDropped = sumFaults('partitions whose records were removed could not be dropped', onFault, clock);
  let isStopped = false;
  let cancel: (() => void) | null = null;
  const create = async (by: Send): Promise<void> => {
    let delayMs = createMs;
    try {
      await createRecordPartitions(by, clock.now());
    } catch (error) {
      delayMs = retryMs;
      if (!isStopped) failed(error);
    }
    // Tried again with the next creation: what is left costs disk alone.
    await dropEmptyPartitions(by).catch((error: unknown) => {
      if (!isStopped) notDropped(error);
    });
    if (!isStopped) cancel = clock.schedule(delayMs, () => void create(send));
  };
  return {
    start: create,
    stop() {
      isStopped = true;
      cancel?.();
    },
  };
}

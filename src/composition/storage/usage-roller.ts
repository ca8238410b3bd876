import { keepRollingUp } from '../../background/roll-up-usage.ts';
import type { Task } from '../../background/repeat.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import type { Log } from '../../telemetry/log/logger.ts';
import type { StorageServices } from './storage-services.ts';

/** Rolls usage up; of processes that share it, one does for all. */
export function rollUsageUp(
  { usageRollups, recovered, shared }: StorageServices,
  clock: Clock,
  log: Pick<Log, 'fault'>,
): Pick<Task, 'stop'> {
  const duty = shared?.usageDuty ?? null;
  return keepRollingUp(usageRollups, { ready: recovered, clock, duty, onFault: log.fault });
}

import type { Log } from '../telemetry/log/logger.ts';
import type { Observability } from './observability.ts';

/** Counts reloads of the config, and logs those that fail, and the first one that succeeds again. */
export function reportReloads(
  log: Pick<Log, 'fault' | 'notice'>,
  { metrics }: Pick<Observability, 'metrics'>,
) {
  let isFailing = false;
  return {
    succeeded(): void {
      metrics.configReloaded('ok');
      if (isFailing) log.notice('config reload succeeds again');
      isFailing = false;
    },
    failed(error: unknown): void {
      metrics.configReloaded('failed');
      isFailing = true;
      log.fault('config reload failed: the previous config stays in force', error);
    },
  };
}

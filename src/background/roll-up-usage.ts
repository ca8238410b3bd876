import type { UsageRollups } from '../domain/ports/usage.ts';
import { isOurs, repeatTask } from './repeat.ts';
import type { DutyOfOne, Task, TaskPorts } from './repeat.ts';

/** How long after the start, and how often, usage is rolled up, in milliseconds. */
const firstMs = 30_000;
const rollUpMs = 600_000;

/** Rolls up the days and months that are over, every ten minutes. Until then usage is read by its hours. */
export function keepRollingUp(
  rollups: UsageRollups,
  { duty, ...ports }: TaskPorts & { readonly duty: DutyOfOne },
): Pick<Task, 'stop'> {
  const failure = 'usage could not be rolled up: it is tried again in ten minutes';
  return repeatTask(ports, { firstMs, delayMs: rollUpMs, failure }, async (_signal, pause) => {
    if (await isOurs(duty)) await rollups.rollUp(ports.clock.now(), pause);
  });
}

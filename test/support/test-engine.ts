import { systemClock } from '../../src/composition/clock.ts';
import type { Engine } from '../../src/storage/engine.ts';
import { createSqliteEngine } from '../../src/storage/sqlite/engine.ts';

type Options = Parameters<typeof createSqliteEngine>[0];

/** An engine on a file or in memory. Faults are dropped unless the test collects them. */
export function openTestEngine(path: string, options: Partial<Options> = {}): Engine {
  return createSqliteEngine({
    path,
    durability: 'normal',
    clock: systemClock,
    onFault: () => {},
    ...options,
  });
}

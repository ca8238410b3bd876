import { systemClock } from '../../src/composition/clock.ts';
import type { Engine } from '../../src/storage/engine.ts';
import { createSqliteEngine } from '../../src/storage/sqlite/engine.ts';
import { serveHere } from '../../src/storage/sqlite/thread.ts';

type Options = Parameters<typeof createSqliteEngine>[0];

/**
 * An engine on a file or in memory, whose connections are served in the thread of the test: threads take longer to start than
 * most tests. Faults are dropped unless the test collects them.
 */
export function openTestEngine(path: string, options: Partial<Options> = {}): Engine {
  return openThreadedEngine(path, { startThread: serveHere, ...options });
}

/** An engine whose connections have threads, as in production: a lock that another process has holds up nothing else. */
export function openThreadedEngine(path: string, options: Partial<Options> = {}): Engine {
  return createSqliteEngine({
    path,
    durability: 'normal',
    clock: systemClock,
    onFault: () => {},
    ...options,
  });
}

import type { Engine } from '../../src/storage/engine.ts';
import { createFakeClock } from './fake-clock.ts';
import { openTestEngine } from './test-engine.ts';

/** A database whose clock stands still until the test moves it, forwards or back. */
export interface TimedDatabase<Opened extends Engine = Engine> {
  readonly engine: Opened;
  readonly move: (byMs: number) => Promise<void>;
}

/** SQLite: its clock is that of its engine. */
export async function openTimedSqlite(path: string): Promise<TimedDatabase> {
  const clock = createFakeClock();
  let movedMs = 0;
  const engine = openTestEngine(path, { clock: { ...clock, now: () => clock.now() + movedMs } });
  await engine.ready;
  return { engine, move: async (byMs) => void (movedMs += byMs) };
}

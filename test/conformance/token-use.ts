import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { dayWindow, minuteWindow } from '../../src/domain/limits/token-limits.ts';
import type { TokenWindow, TokenUse } from '../../src/domain/limits/token-limits.ts';
import { createTokenUse } from '../../src/storage/token-use.ts';
import type { TimedDatabase } from '../support/timed-sqlite.ts';
import { propertyRun } from '../support/property-run.ts';
import { say } from './engine.ts';

/** What every engine must do for limits of tokens. */
export function describeTokenUse(name: string, open: () => Promise<TimedDatabase>, runs: number): void {
  const setUp = async () => {
    const { engine, move } = await open();
    onTestFinished(() => engine.close());
    const use = createTokenUse(engine, (message) => expect.unreachable(message));
    const rows = async (): Promise<number> =>
      Number((await engine.read([say('SELECT count(*) AS count FROM token_use')]))[0]?.[0]?.['count']);
    return { use, move, rows };
  };
  const sumOf = async (use: TokenUse, { lengthMs }: TokenWindow, keyId = 'key'): Promise<number> => {
    const slices = await use.used(keyId);
    return slices.filter((slice) => slice.lengthMs === lengthMs).reduce((sum, { tokens }) => sum + tokens, 0);
  };

  describe(`${name}: used tokens`, () => {
    test('are counted for their key, in both windows, however many are added at once', async () => {
      const { use } = await setUp();
      await Promise.all(Array.from({ length: 20 }, (_, index) => use.add('key', index)));
      await use.add('other', 7);
      expect(await sumOf(use, minuteWindow)).toBe(190);
      expect(await sumOf(use, dayWindow)).toBe(190);
      expect(await sumOf(use, minuteWindow, 'other')).toBe(7);
      expect(await use.used('unknown')).toEqual([]);
    });

    test('leave each window when it is over, with the slice in which they were used', async () => {
      const { use, move } = await setUp();
      await use.add('key', 5);
      const minute = (await use.used('key')).find(({ lengthMs }) => lengthMs === minuteWindow.lengthMs);
      const expiresInMs = minute?.expiresInMs ?? 0;
      expect(expiresInMs).toBeGreaterThan(minuteWindow.lengthMs);
      expect(expiresInMs).toBeLessThanOrEqual(minuteWindow.lengthMs + minuteWindow.sliceMs);
      await move(expiresInMs - 1);
      expect(await sumOf(use, minuteWindow)).toBe(5);
      await move(1);
      expect(await sumOf(use, minuteWindow)).toBe(0);
      expect(await sumOf(use, dayWindow)).toBe(5);
      await move(dayWindow.lengthMs + dayWindow.sliceMs);
      expect(await use.used('key')).toEqual([]);
    });

    test('of a time that a clock was set back from count no more', async () => {
      const { use, move } = await setUp();
      await use.add('key', 5);
      await move(-2 * dayWindow.sliceMs);
      expect(await use.used('key')).toEqual([]);
      await use.add('key', 3);
      expect(await sumOf(use, dayWindow)).toBe(3);
    });

    test('are never counted for a shorter time than their window, and for one slice more at most', async () => {
      const { use, move } = await setUp();
      let [nowMs, keys] = [0, 0];
      const step = fc.oneof(
        fc.record({ tokens: fc.nat({ max: 100 }) }),
        fc.record({ moveMs: fc.oneof(fc.nat({ max: 70_000 }), fc.nat({ max: 90_000_000 })) }),
      );
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 15 }), async (steps) => {
          const keyId = `key ${keys++}`;
          const added: { readonly atMs: number; readonly tokens: number }[] = [];
          const within = (ms: number): number =>
            added.reduce((sum, { atMs, tokens }) => (nowMs - atMs < ms ? sum + tokens : sum), 0);
          for (const one of steps) {
            if ('moveMs' in one) {
              await move(one.moveMs);
              nowMs += one.moveMs;
            } else {
              await use.add(keyId, one.tokens);
              added.push({ atMs: nowMs, tokens: one.tokens });
            }
            for (const window of [minuteWindow, dayWindow]) {
              const counted = await sumOf(use, window, keyId);
              expect(counted).toBeGreaterThanOrEqual(within(window.lengthMs));
              expect(counted).toBeLessThanOrEqual(within(window.lengthMs + window.sliceMs));
            }
          }
        }),
        propertyRun(runs),
      );
    });

    test('take no more rows of a key than its windows have slices', async () => {
      const { use, move, rows } = await setUp();
      const inMinute = minuteWindow.lengthMs / minuteWindow.sliceMs + 1;
      for (let slice = 0; slice < inMinute + 10; slice++) {
        await move(minuteWindow.sliceMs);
        await use.add('key', 1);
      }
      expect(await rows()).toBeLessThanOrEqual(inMinute + 2);
      await move(dayWindow.lengthMs + dayWindow.sliceMs);
      await use.add('key', 1);
      expect(await rows()).toBe(2);
    });
  });
}

import { describe, expect, onTestFinished, test } from 'vitest';
import type { Engine } from '../../src/storage/engine.ts';
import { createRefusals } from '../../src/storage/refusals.ts';
import { say } from './engine.ts';

const dayMs = 86_400_000;
const today = 20_000 * dayMs;

/** What every engine must do for sums of refused requests. */
export function describeRefusals(name: string, open: () => Promise<Engine>): void {
  const setUp = async () => {
    const engine = await open();
    onTestFinished(() => engine.close());
    return { engine, refusals: createRefusals(engine) };
  };
  const rate = { dayMs: today, keyId: 'a', limit: 'rate' };

  describe(`${name}: refused requests`, () => {
    test('are added up by key and limit, whichever nodes add to them at once', async () => {
      const { engine, refusals } = await setUp();
      const other = createRefusals(engine);
      const tokens = { ...rate, limit: 'tokens' };
      const ofOther = { ...rate, keyId: 'b' };
      await Promise.all(
        Array.from({ length: 20 }, (_, at) =>
          (at % 2 === 0 ? refusals : other).add(
            // In another order each time: no two units may wait for each other.
            [
              { ...rate, requests: 1 },
              { ...tokens, requests: at },
              { ...ofOther, requests: 2 },
            ].toSorted(() => (at % 3) - 1),
          ),
        ),
      );
      const found = await other.ofDay(['a', 'b', 'c'], today);
      expect(Object.fromEntries(found)).toEqual({ a: { rate: 20, tokens: 190 }, b: { rate: 40 } });
      expect(Object.fromEntries(await other.ofDay(['b'], today))).toEqual({ b: { rate: 40 } });
      expect((await refusals.ofDay([], today)).size).toBe(0);
      const days = { fromMs: today, toMs: today + dayMs };
      const { byLimit, byKey } = await other.ofDays(days, 1);
      const all = (await other.ofDays(days, 100)).byKey;
      const sum = (rows: readonly { readonly requests: number }[]) =>
        rows.reduce((total, { requests }) => total + requests, 0);
      expect([sum(byLimit), byKey]).toEqual([sum(all), all.slice(0, 1)]);
      expect(await other.ofDays({ ...days, keyId: 'b' }, 9)).toEqual({
        byLimit: [{ limit: 'rate', requests: 40, keys: 1 }],
        byKey: [{ keyId: 'b', limit: 'rate', requests: 40 }],
      });
      expect(await other.ofDays({ fromMs: 0, toMs: today }, 9)).toEqual({ byLimit: [], byKey: [] });
    });

    test('are those of one day, and are kept for a month', async () => {
      const { engine, refusals } = await setUp();
      const count = async () =>
        Number((await engine.read([say('SELECT count(*) AS count FROM refusals')]))[0]?.[0]?.['count']);
      await refusals.add([{ ...rate, requests: 3 }]);
      await refusals.add([{ ...rate, dayMs: today + dayMs, requests: 4 }]);
      expect((await refusals.ofDay(['a'], today)).get('a')).toEqual({ rate: 3 });
      expect((await refusals.ofDay(['a'], today + dayMs)).get('a')).toEqual({ rate: 4 });
      await refusals.add([{ ...rate, dayMs: today + 32 * dayMs, requests: 1 }]);
      expect(await count()).toBe(3);
      await refusals.add([{ ...rate, dayMs: today + 33 * dayMs, requests: 1 }]);
      expect(await count()).toBe(3);
      expect((await refusals.ofDay(['a'], today)).size).toBe(0);
    });
  });
}

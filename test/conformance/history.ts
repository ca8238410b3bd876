import { describe, expect, onTestFinished, test } from 'vitest';
import { GroupCounts } from '../../src/domain/history/counts.ts';
import { longInterval, shortInterval } from '../../src/domain/history/interval.ts';
import type { HistoryPart } from '../../src/domain/history/interval.ts';
import { writePart } from '../../src/domain/history/part-text.ts';
import type { HistoryRange } from '../../src/domain/ports/history.ts';
import type { Engine } from '../../src/storage/engine.ts';
import { createHistory } from '../../src/storage/history.ts';
import { summary } from '../support/exchange-summary.ts';
import { say } from './engine.ts';

const startMs = Date.UTC(2030, 0, 31);
const { lengthMs } = shortInterval;

/** A part with so many requests. */
function part(at: number, process = 'a', requests = 1) {
  const counts = new GroupCounts('upstream,model');
  for (let time = 0; time < requests; time++) counts.count({ ...summary, chargeNanos: 2 ** 52 });
  const text = writePart({ figures: null, groups: counts.top() });
  return { lengthMs, atMs: startMs + at * lengthMs, process, grouping: 'model' as const, text };
}

/** What every engine must do for the history of its processes. */
export function describeHistory(name: string, open: () => Promise<Engine>): void {
  const setUp = async () => {
    const engine = await open();
    onTestFinished(() => engine.close());
    const history = createHistory(engine);
    const read = async (range: Partial<HistoryRange> = {}) => {
      const whole = { lengthMs, grouping: 'model' as const, fromMs: startMs, toMs: startMs + 86_400_000 };
      const pages: (readonly HistoryPart[])[] = [];
      for await (const page of history.read({ ...whole, ...range })) pages.push(page);
      return pages;
    };
    const placesOf = (parts: readonly HistoryPart[]) =>
      parts.map(({ atMs, process }) => `${(atMs - startMs) / lengthMs} ${process}`);
    return { engine, history, read, placesOf };
  };

  describe(`${name}: history`, () => {
    test('is read in the order of time, some parts at a time, each once', async () => {
      const { history, read, placesOf } = await setUp();
      const all = Array.from({ length: 90 }, (_, at) => ['c', 'a', 'b'].map((process) => part(at, process)));
      await history.write(all.flat(), startMs);
      const pages = await read();
      expect(pages.map(({ length }) => length)).toEqual([...Array.from({ length: 13 }, () => 20), 10]);
      expect(placesOf(pages.flat())).toEqual(
        Array.from({ length: 90 }, (_, at) => [`${at} a`, `${at} b`, `${at} c`]).flat(),
      );
    });

    test('is that of a time, of intervals of one length, and by one grouping', async () => {
      const { history, read, placesOf } = await setUp();
      const others = [
        { ...part(1), grouping: '' as const },
        { ...part(1), lengthMs: 60_000 },
      ];
      await history.write([part(0), part(1), part(2), part(3), ...others], startMs);
      const found = await read({ fromMs: startMs + lengthMs, toMs: startMs + 3 * lengthMs });
      expect(placesOf(found.flat())).toEqual(['1 a', '2 a']);
      expect(await read({ fromMs: startMs + 1, toMs: startMs + lengthMs })).toEqual([]);
      expect(placesOf((await read({ grouping: '' })).flat())).toEqual(['1 a']);
    });

    test('has the last of what was written of an interval, with exact sums', async () => {
      const { history, read } = await setUp();
      await history.write([part(0, 'a', 1), part(0, 'b', 5)], startMs);
      await history.write([part(0, 'a', 3)], startMs);
      const found = (await read()).flat();
      expect(found.map(({ groups }) => groups[0]?.counts.chargeNanos)).toEqual([
        3n * 2n ** 52n,
        5n * 2n ** 52n,
      ]);
    });

    test('is kept for an hour by short intervals and for a day by minutes, and then removed', async () => {
      const { engine, history } = await setUp();
      const minute = { ...part(0), lengthMs: longInterval.lengthMs };
      await history.write([part(0), minute], startMs);
      const count = async () => {
        const rows = await engine.read([say('SELECT length_ms AS count FROM history_intervals ORDER BY 1')]);
        return rows[0]?.map((row) => Number(row['count']));
      };
      await history.write([part(1)], startMs + shortInterval.keptMs);
      expect(await count()).toEqual([10_000, 10_000, 60_000]);
      await history.write([part(1)], startMs + shortInterval.keptMs + 1);
      expect(await count()).toEqual([10_000, 60_000]);
      await history.write([{ ...part(9_000), lengthMs: 60_000 }], startMs + longInterval.keptMs + 1);
      expect(await count()).toEqual([60_000]);
    });

    test('takes what processes write at once', async () => {
      const { engine, history, read } = await setUp();
      const other = createHistory(engine);
      await Promise.all(
        Array.from({ length: 20 }, (_, at) =>
          (at % 2 === 0 ? history : other).write(
            [part(at % 4, `p${at}`), part(at % 4, 'same')].toSorted(() => (at % 3) - 1),
            startMs + longInterval.keptMs,
          ),
        ),
      );
      expect((await read()).flat()).toHaveLength(0);
      await history.write([part(0)], startMs);
      expect((await read()).flat()).toHaveLength(1);
    });
  });
}

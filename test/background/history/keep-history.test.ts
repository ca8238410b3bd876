import { describe, expect, test } from 'vitest';
import { keepHistory } from '../../../src/background/history/keep-history.ts';
import { readPart } from '../../../src/domain/history/part-text.ts';
import type { StoredPart } from '../../../src/domain/ports/history.ts';
import type { UpstreamState } from '../../../src/domain/upstreams/circuit.ts';
import { summary } from '../../support/exchange-summary.ts';
import { createFakeClock } from '../../support/fake-clock.ts';

const startMs = Date.UTC(2030, 0, 31, 12, 0, 0);

/** A history over a store that may be away, and whose clock may be set. */
async function start() {
  const fake = createFakeClock(startMs);
  const state = {
    isAway: false,
    setMs: 0,
    ids: 0,
    states: {} as Record<string, UpstreamState>,
    delayMs: 3,
    faults: [] as string[],
  };
  const clock = { ...fake, now: () => fake.now() + state.setMs };
  const stored = new Map<string, StoredPart>();
  const kept = keepHistory(
    {
      async write(parts) {
        if (state.isAway) throw new Error('the database is away');
        for (const part of parts)
          stored.set(`${part.process} ${part.lengthMs} ${part.atMs} ${part.grouping}`, part);
      },
    },
    {
      ready: Promise.resolve(),
      clock,
      onFault: (message) => void state.faults.push(message),
      nextId: () => `process ${++state.ids}`,
      node: 'host:1',
      readLoad: () => ({ eventLoopDelayMs: state.delayMs, memoryBytes: 1_000 }),
      upstreamStates: () => state.states,
    },
  );
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  await settle();
  return {
    kept,
    state,
    stored,
    /** One second after the other, as the clock goes. */
    later: async (seconds: number) => {
      for (let second = 0; second < seconds; second++) {
        fake.advance(1_000);
        await settle();
      }
    },
    end: (times = 1, more = {}) => {
      for (let at = 0; at < times; at++) {
        kept.sink.exchangeBegan();
        kept.sink.exchangeEnded({ ...summary, ...more });
      }
    },
    /** What is stored of all requests of intervals of a length, in the order of time. */
    intervals: (lengthMs: number) => {
      return [...stored.values()]
        .filter((part) => part.lengthMs === lengthMs && part.grouping === '')
        .map(({ text, process, atMs }) => {
          const { figures, groups } = readPart(text);
          const requests = groups[0]?.counts.requests['completed'] ?? 0;
          return { atS: (atMs - startMs) / 1_000, process, requests, figures };
        });
    },
  };
}

const marksOf = (intervals: ReturnType<Awaited<ReturnType<typeof start>>['intervals']>) =>
  intervals.flatMap(({ figures }) => figures?.marks.map(({ kind }) => kind) ?? []);

describe('the history of a process', () => {
  test('is stored by intervals of 10 s and by minutes, which grow, each within a second of its end', async () => {
    const { end, later, intervals } = await start();
    end(3);
    await later(9);
    expect(intervals(10_000)).toEqual([]);
    await later(1);
    expect(intervals(10_000)).toMatchObject([{ atS: 0, requests: 3 }]);
    expect(intervals(60_000)).toMatchObject([{ atS: 0, requests: 3 }]);
    end(4);
    await later(50);
    end(5);
    await later(10);
    expect(intervals(10_000).map(({ requests }) => requests)).toEqual([3, 4, 0, 0, 0, 0, 5]);
    expect(intervals(60_000).map(({ atS, requests }) => [atS, requests])).toEqual([
      [0, 7],
      [60, 5],
    ]);
  });

  test('counts a request in the interval in which it ended, also where no look came between', async () => {
    const { kept, end, later, intervals, state } = await start();
    state.setMs = 9_999;
    end();
    state.setMs = 10_000;
    end(2);
    await later(1);
    await kept.stop();
    expect(intervals(10_000).map(({ atS, requests }) => [atS, requests])).toEqual([
      [0, 1],
      [10, 2],
    ]);
  });

  test('has the most requests that ran and waited, the worst delay and states, and what happened', async () => {
    const { kept, later, intervals, state } = await start();
    for (let at = 0; at < 5; at++) kept.sink.exchangeBegan();
    kept.sink.waitBegan();
    kept.sink.waitBegan();
    kept.sink.waitEnded();
    state.states = { a: 'open', b: 'closed' };
    kept.mark('circuit_opened', { upstream: 'a' });
    state.delayMs = 250;
    await later(10);
    state.states = { a: 'half_open', b: 'closed' };
    state.delayMs = 1;
    for (let at = 0; at < 5; at++) kept.sink.exchangeEnded(summary);
    await later(10);
    expect(intervals(10_000).map(({ figures }) => figures)).toMatchObject([
      { node: 'host:1', running: 5, waiting: 2, eventLoopDelayMs: 250, upstreamStates: [['a', 'open']] },
      { running: 4, waiting: 1, eventLoopDelayMs: 1, upstreamStates: [['a', 'half_open']], marks: [] },
    ]);
    expect(intervals(60_000)).toMatchObject([
      { figures: { running: 5, waiting: 2, eventLoopDelayMs: 250, upstreamStates: [['a', 'open']] } },
    ]);
    expect(marksOf(intervals(60_000))).toEqual(['process_began', 'circuit_opened']);
  });

  test('keeps the first marks of an interval and that of the end of the process, and counts the others', async () => {
    const { kept, later, intervals } = await start();
    for (let at = 0; at < 80; at++) kept.mark('circuit_opened', { upstream: 'a', model: null });
    await later(10);
    for (let at = 0; at < 10; at++) kept.mark('circuit_closed', { upstream: 'a', model: null });
    await later(10);
    expect(intervals(10_000)[0]).toMatchObject({ figures: { marksLeftOut: 31 } });
    expect(intervals(60_000)[0]).toMatchObject({ figures: { marksLeftOut: 41 } });
    expect(marksOf(intervals(60_000))).toHaveLength(50);
    for (let at = 0; at < 80; at++) kept.mark('circuit_closed', { upstream: 'a', model: null });
    await kept.stop();
    expect(marksOf(intervals(60_000))).toHaveLength(50);
    expect([intervals(10_000), intervals(60_000)].map((all) => marksOf(all).at(-1))).toEqual([
      'process_ended',
      'process_ended',
    ]);
  });

  test('is offered again while the database is away, for ten minutes, and logs that once in ten seconds', async () => {
    const { end, later, intervals, state } = await start();
    state.isAway = true;
    for (let at = 0; at < 90; at++) {
      end();
      await later(10);
    }
    expect(new Set(state.faults.map((fault) => fault.replace(/ \(.*/, '')))).toEqual(
      new Set(['history could not be written']),
    );
    expect(state.faults.length).toBeLessThan(100);
    state.isAway = false;
    await later(1);
    const found = intervals(10_000);
    expect(found.at(-1)).toMatchObject({ atS: 890, requests: 1 });
    expect(found.length + intervals(60_000).length).toBe(70);
  });

  test('begins another run of its process where the clock is set back, so that nothing is replaced', async () => {
    const { end, later, intervals, state } = await start();
    end(3);
    await later(20);
    state.setMs = -10_000;
    end(2);
    await later(20);
    expect(intervals(10_000).map(({ process, atS, requests }) => [process, atS, requests])).toEqual([
      ['process 1', 0, 3],
      ['process 1', 10, 0],
      ['process 1', 20, 2],
    ]);
    state.setMs = -3_600_000;
    end(4);
    await later(60);
    const found = intervals(10_000).find(({ process }) => process === 'process 2');
    expect(found).toMatchObject({ atS: -3_560, requests: 4 });
    expect(marksOf(intervals(10_000))).toEqual(['process_began', 'clock_set_back']);
    expect(intervals(60_000).filter(({ process }) => process === 'process 1')).toMatchObject([
      { requests: 5 },
    ]);
  });

  test('goes on where the clock is set ahead', async () => {
    const { end, later, intervals, state } = await start();
    end(3);
    state.setMs = 86_400_000;
    end(2);
    await later(10);
    expect(intervals(10_000).map(({ atS, requests }) => [atS, requests])).toEqual([
      [0, 3],
      [86_400, 2],
    ]);
  });

  test('stores the open interval when the process ends, with the mark of its end', async () => {
    const { kept, end, intervals } = await start();
    end(2);
    await kept.stop();
    expect(intervals(10_000)).toMatchObject([{ requests: 2 }]);
    expect(marksOf(intervals(60_000))).toEqual(['process_began', 'process_ended']);
  });
});

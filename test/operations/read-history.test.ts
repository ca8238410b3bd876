import { describe, expect, test } from 'vitest';
import { GroupCounts } from '../../src/domain/history/counts.ts';
import type { CountedExchange, HistoryGrouping } from '../../src/domain/history/counts.ts';
import { partsOf } from '../../src/domain/history/interval.ts';
import type { HistoryPart, MarkKind } from '../../src/domain/history/interval.ts';
import type { HistoryRange } from '../../src/domain/ports/history.ts';
import { readHistory } from '../../src/operations/read-history.ts';
import { summary } from '../support/exchange-summary.ts';
import { createFakeClock } from '../support/fake-clock.ts';

const nowMs = Date.UTC(2030, 0, 31, 12, 0, 5);
const minuteMs = 60_000;
const dayMs = 86_400_000;

/** The parts of an interval of a process. */
function interval(
  lengthMs: number,
  atMs: number,
  process = 'a',
  ended: readonly Partial<CountedExchange>[] = [{}],
  kinds: readonly MarkKind[] = [],
): readonly HistoryPart[] {
  const pairs = new GroupCounts('upstream,model');
  for (const one of ended) pairs.count({ ...summary, ...one });
  const node = `host:${process}`;
  const figures = {
    node,
    running: 2,
    waiting: 1,
    eventLoopDelayMs: 4,
    memoryBytes: 100,
    upstreamStates: [['local', process === 'a' ? 'half_open' : 'open']] as const,
    marks: kinds.map((kind) => ({ atMs, kind, node, upstream: null, model: null })),
    marksLeftOut: 0,
  };
  return partsOf({ lengthMs, atMs, process }, figures, pairs);
}

/** Reads a history of some parts; `pages` counts how often some were read. */
async function read(
  parts: readonly HistoryPart[],
  query: { readonly fromMs: number; readonly toMs?: number; readonly by?: HistoryGrouping },
) {
  const store = {
    async *read({ lengthMs, grouping, fromMs, toMs }: HistoryRange) {
      const found = parts
        .filter((part) => part.lengthMs === lengthMs && part.grouping === grouping)
        .filter(({ atMs }) => atMs >= fromMs && atMs < toMs)
        .toSorted((one, other) => one.atMs - other.atMs);
      for (let at = 0; at < found.length; at += 3) yield found.slice(at, at + 3);
    },
  };
  return readHistory({ toMs: nowMs, by: '', ...query }, { store, clock: createFakeClock(nowMs) });
}

describe('the history of all processes', () => {
  test('is added up over processes, and over the intervals between two points', async () => {
    const atMs = nowMs - 5_000 - 10 * minuteMs;
    const parts = [
      ...interval(10_000, atMs, 'a', [{ chargeNanos: 5 }, { model: 'large' }]),
      ...interval(10_000, atMs, 'b', [{ chargeNanos: 7, firstTextMs: 1_000 }]),
      ...interval(10_000, atMs + 10_000, 'a', [{}]),
    ];
    const history = await read(parts, { fromMs: atMs, by: 'model' });
    expect(history.stepMs).toBe(10_000);
    expect(history.points).toMatchObject([
      {
        atMs,
        processes: 2,
        running: 4,
        waiting: 2,
        eventLoopDelayMs: 4,
        memoryBytes: 200,
        upstreamStates: [['local', 'open']],
        requests: { completed: 3 },
        chargeNanos: 12n,
        firstTextMs: { p50: 2 },
        groups: [
          {
            model: 'small',
            upstream: null,
            isOther: false,
            figures: { requests: { completed: 2 }, chargeNanos: 12n },
          },
          { model: 'large', figures: { requests: { completed: 1 } } },
        ],
      },
      { processes: 1, running: 2, requests: { completed: 1 } },
    ]);
    expect(history.points[0]?.firstTextMs.p99).toBeGreaterThan(970);
    const day = await read(interval(minuteMs, nowMs - 5_000 - 20 * 3_600_000), {
      fromMs: nowMs - dayMs,
      by: 'model',
    });
    expect([day.stepMs, day.points.length]).toEqual([4 * minuteMs, 1]);
  });

  test('has points of 10 s within the last hour, of minutes before, and never more than it may have', async () => {
    const stepOf = async (fromMs: number, toMs = nowMs, by: HistoryGrouping = '') =>
      (await read([], { fromMs, toMs, by })).stepMs;
    expect(await stepOf(nowMs - 900_000)).toBe(10_000);
    expect(await stepOf(nowMs - 3_600_000)).toBe(10_000);
    expect(await stepOf(nowMs - 3_600_000, nowMs, 'model')).toBe(10_000);
    expect(await stepOf(nowMs - 2 * 3_600_000)).toBe(minuteMs);
    expect(await stepOf(nowMs - 20 * 3_600_000, nowMs - 19.9 * 3_600_000)).toBe(minuteMs);
    expect(await stepOf(nowMs - dayMs)).toBe(minuteMs);
    expect(await stepOf(nowMs - dayMs, nowMs, 'upstream,model')).toBe(4 * minuteMs);
    expect(await stepOf(nowMs, nowMs + dayMs)).toBe(10_000 * 6);
  });

  test('has no point of a time that is not over, which would look like a fall, but its marks', async () => {
    const parts = [
      ...interval(10_000, nowMs - 15_000),
      ...interval(10_000, nowMs - 5_000, 'a', [{}], ['config_loaded']),
    ];
    const { points, marks } = await read(parts, { fromMs: nowMs - minuteMs });
    expect(points.map(({ atMs }) => nowMs - atMs)).toEqual([15_000]);
    expect(marks).toMatchObject([{ kind: 'config_loaded' }]);
  });

  test('shows where a process ended without a mark, and not one that ended with it, or may go on', async () => {
    const beginMs = nowMs - 5_000 - 10 * minuteMs;
    const parts = [
      ...interval(10_000, beginMs, 'killed', [{}], ['process_began']),
      ...interval(10_000, beginMs, 'stopped', [{}], ['process_ended']),
      ...interval(10_000, beginMs, 'set back', [{}], ['clock_set_back']),
      ...interval(10_000, nowMs - 35_000, 'runs'),
    ];
    const { marks } = await read(parts, { fromMs: beginMs });
    const kinds = marks.map(({ kind, node }) => `${kind} ${node}`);
    expect(kinds).toHaveLength(4);
    expect(kinds.at(-1)).toBe('process_lost host:killed');
    expect(marks.at(-1)?.atMs).toBe(beginMs + 10_000);
    const before = await read(parts, { fromMs: beginMs, toMs: beginMs + 30_000 });
    expect(before.marks.map(({ kind }) => kind)).not.toContain('process_lost');
  });

  test('has the newest marks where there are too many, and says how many it left out', async () => {
    const parts = Array.from({ length: 60 }, (_, at) =>
      interval(
        10_000,
        nowMs - 5_000 - at * 10_000,
        'a',
        [],
        Array.from({ length: 50 }, () => 'circuit_opened'),
      ),
    ).flat();
    const { marks, marksLeftOut } = await read(parts, { fromMs: nowMs - 20 * minuteMs });
    expect([marks.length, marksLeftOut]).toEqual([1_000, 2_000]);
    expect(marks.at(-1)?.atMs).toBe(nowMs - 5_000);
  });

  test('has the most frequent groups of each point, and one for all others', async () => {
    const ended = Array.from({ length: 120 }, (_, at) => ({ model: `m${at}` }));
    const parts = ['a', 'b'].flatMap((process, at) =>
      interval(10_000, nowMs - 65_000, process, ended.slice(at * 60, at * 60 + 60)),
    );
    const { points } = await read(parts, { fromMs: nowMs - 5 * minuteMs, by: 'model' });
    expect(points[0]?.groups).toHaveLength(51);
    expect(points[0]?.groups.at(-1)).toMatchObject({
      isOther: true,
      figures: { requests: { completed: 70 } },
    });
    expect(points[0]?.requests).toEqual({ completed: 120 });
  });
});

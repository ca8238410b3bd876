import { describe, expect, test } from 'vitest';
import type { LimitReport, ReportedLimit } from '../../../src/protocol/upstream/limit-headers.ts';
import { openLimiters, permitOf } from '../../support/limiter-scene.ts';
import type { Came, LimiterScene } from '../../support/limiter-scene.ts';

const learning = { far: { learnLimits: true, queueWaitMs: 120_000 } };

const reported = (own: Partial<ReportedLimit>): LimitReport => [
  {
    name: 'requests',
    counts: 'requests',
    limit: 60,
    remaining: 60,
    resetMs: 0,
    resolutionMs: 1,
    refill: 'steady',
    ...own,
  },
];

/** How many of some requests that come now enter at once; the others wait. */
function enterMany({ come }: LimiterScene, count: number, prefix = 'b'): number {
  const came = Array.from({ length: count }, (_, number) => come(`${prefix}${number}`));
  return came.filter(({ result }) => result !== null).length;
}

describe('limits that answers report', () => {
  test('are unknown before the first answer: four requests are sent', async () => {
    const scene = openLimiters(learning);
    const first = permitOf(scene.come('a1'));
    expect(enterMany(scene, 9)).toBe(3);
    expect(scene.limiters.views()).toMatchObject([{ maxInFlight: 4, waiting: 6, learned: [] }]);
    first.answered(200, null, null);
    await scene.pass(0);
    expect(scene.limiters.views()).toMatchObject([{ maxInFlight: null, waiting: 0, inFlight: 10 }]);
  });

  test('are kept: as many requests are sent as are left', () => {
    const scene = openLimiters(learning);
    permitOf(scene.come('a1')).answered(200, null, reported({ remaining: 3, resetMs: 57_000 }));
    expect(scene.limiters.views()).toMatchObject([{ learned: [{ name: 'requests', limit: 60, left: 3 }] }]);
    expect(enterMany(scene, 9)).toBe(3);
  });

  test('are used by none that was not sent, neither at once nor in a later report', () => {
    const scene = openLimiters(learning);
    const window = { refill: 'window', resetMs: 60_000 } as const;
    const answered = permitOf(scene.come('a1'));
    answered.answered(200, null, reported({ ...window, remaining: 2 }));
    for (let count = 0; count < 3; count++) permitOf(scene.come('b1')).releaseUnused();
    const [unsent, later] = [permitOf(scene.come('c1')), permitOf(scene.come('d1'))];
    unsent.releaseUnused();
    later.answered(200, null, reported({ ...window, remaining: 1 }));
    expect(enterMany(scene, 9, 'e')).toBe(1);
  });

  test('that last for days are tried by a request that is sent: one that is not leaves it to the next', async () => {
    const scene = openLimiters({ far: { learnLimits: true, queueWaitMs: 3_600_000 } });
    const first = permitOf(scene.come('a1'));
    first.answered(200, null, reported({ limit: 10, remaining: 0, resetMs: 31 * 86_400_000 }));
    first.release(null);
    const [unsent, next] = ['b1', 'c1'].map((id) => scene.come(id)) as [Came, Came];
    await scene.pass(600_000);
    expect(next.result).toBeNull();
    permitOf(unsent).releaseUnused();
    await scene.pass(0);
    expect(next.result).toMatchObject({ kind: 'acquired' });
  });

  test('free permits at the rate at which they come back', async () => {
    const scene = openLimiters(learning);
    permitOf(scene.come('a1')).answered(200, null, reported({ remaining: 0, resetMs: 60_000 }));
    const came = ['b1', 'b2'].map((id) => scene.come(id));
    await scene.pass(999);
    expect(came.map(({ result }) => result?.kind)).toEqual([undefined, undefined]);
    await scene.pass(1);
    expect(came.map(({ result }) => result?.kind)).toEqual(['acquired', undefined]);
    await scene.pass(1_000);
    expect(came.map(({ result }) => result?.kind)).toEqual(['acquired', 'acquired']);
  });

  test('have the period that their reset shows, such as a day', async () => {
    const scene = openLimiters({ far: { learnLimits: true, queueWaitMs: 7_200_000 } });
    // 14,400 a day are one in 6 s: 14,400 used ones are back in a day.
    const report = reported({ limit: 14_400, remaining: 0, resetMs: 86_400_000 });
    permitOf(scene.come('a1')).answered(200, null, report);
    const next = scene.come('b1');
    await scene.pass(5_999);
    expect(next.result).toBeNull();
    await scene.pass(1);
    expect(next.result).toMatchObject({ kind: 'acquired' });
  });

  test('that last for days are tried after ten minutes, by one request at a time', async () => {
    const scene = openLimiters({ far: { learnLimits: true, queueWaitMs: 7_200_000 } });
    const report = reported({ limit: 10, remaining: 0, resetMs: 31 * 86_400_000 });
    const first = permitOf(scene.come('a1'));
    first.answered(200, null, report);
    first.release({ input: 0, output: 0 });
    const came = ['b1', 'b2'].map((id) => scene.come(id));
    expect(scene.limiters.waiting('b1')).toMatchObject({ expectedMs: 600_000 });
    await scene.pass(599_999);
    expect(came.map(({ result }) => result)).toEqual([null, null]);
    await scene.pass(1);
    expect(came.map(({ result }) => result?.kind)).toEqual(['acquired', undefined]);
    const trial = permitOf(came[0] as Came);
    trial.answered(200, null, reported({ limit: 1_000, remaining: 900, resetMs: 6_000 }));
    await scene.pass(0);
    expect(came.map(({ result }) => result?.kind)).toEqual(['acquired', 'acquired']);
  });

  test('let a request wait for tokens that those in progress may leave over', async () => {
    const scene = openLimiters({ far: { learnLimits: true, queueWaitMs: 3_000 } });
    const tokens = { input: 0, output: 500 };
    const first = permitOf(scene.come('a1', { tokens }));
    const report = reported({
      name: 'tokens',
      counts: 'tokens',
      limit: 1_000,
      remaining: 600,
      refill: 'window',
      resetMs: 50_000,
    });
    first.answered(200, null, report);
    first.release({ input: 0, output: 0 });
    const running = permitOf(scene.come('a2', { tokens }));
    const next = scene.come('a3', { tokens });
    expect(next.result).toBeNull();
    running.release({ input: 0, output: 10 });
    await scene.pass(0);
    expect(next.result).toMatchObject({ kind: 'acquired' });
  });

  test('of a window come back at its end, and not before', async () => {
    const scene = openLimiters(learning);
    const report = reported({
      limit: 5,
      remaining: 1,
      resetMs: 20_000,
      resolutionMs: 1_000,
      refill: 'window',
    });
    permitOf(scene.come('a1')).answered(200, null, report);
    expect(enterMany(scene, 9)).toBe(1);
    await scene.pass(20_999);
    expect(scene.acquired).toHaveLength(2);
    await scene.pass(1);
    // The one that has had no answer may be counted in the new window.
    expect(scene.acquired).toHaveLength(6);
  });

  test('of a window without a known end are over a minute after it was first seen', async () => {
    const scene = openLimiters(learning);
    const report = reported({ limit: 2, remaining: 1, resetMs: null, refill: 'window' });
    permitOf(scene.come('a1')).answered(200, null, report);
    await scene.pass(30_000);
    permitOf(scene.come('a2')).answered(
      200,
      null,
      reported({ limit: 2, remaining: 0, resetMs: null, refill: 'window' }),
    );
    const next = scene.come('a3');
    await scene.pass(29_999);
    expect(next.result).toBeNull();
    await scene.pass(1);
    expect(next.result).toMatchObject({ kind: 'acquired' });
  });

  test('are a window where the end stays where it is, whatever their headers usually mean', async () => {
    const scene = openLimiters(learning);
    for (const [number, remaining] of [50, 40, 30, 0].entries()) {
      const permit = permitOf(scene.come(`a${number}`));
      permit.answered(200, null, reported({ remaining, resetMs: 40_000 - number * 1_000 }));
      permit.release(null);
      await scene.pass(1_000);
    }
    const next = scene.come('b1');
    // With a steady refill the next one would be there a second later.
    await scene.pass(36_000);
    expect(next.result).toBeNull();
    await scene.pass(1);
    expect(next.result).toMatchObject({ kind: 'acquired' });
  });

  test('count what the report cannot have seen', () => {
    const scene = openLimiters(learning);
    const first = permitOf(scene.come('a1'));
    const second = permitOf(scene.come('a2'));
    permitOf(scene.come('a3'));
    // Of three requests that were sent, two have no answer yet: they may be missing in this report.
    first.answered(200, null, reported({ remaining: 5, resetMs: 55_000 }));
    expect(scene.limiters.views()).toMatchObject([{ learned: [{ left: 3 }] }]);
    second.answered(200, null, reported({ remaining: 4, resetMs: 56_000 }));
    expect(scene.limiters.views()).toMatchObject([{ learned: [{ left: 3 }] }]);
  });

  test('follow what others use of the same account', async () => {
    const scene = openLimiters(learning);
    permitOf(scene.come('a1')).answered(200, null, reported({ remaining: 50, resetMs: 10_000 }));
    await scene.pass(2_000);
    const next = permitOf(scene.come('a2'));
    expect(scene.limiters.views()).toMatchObject([{ learned: [{ left: 51 }] }]);
    next.answered(200, null, reported({ remaining: 7, resetMs: 53_000 }));
    expect(scene.limiters.views()).toMatchObject([{ learned: [{ left: 7 }] }]);
  });

  test('follow an upstream that counts less than was expected', async () => {
    const scene = openLimiters(learning);
    permitOf(scene.come('a1')).answered(200, null, reported({ remaining: 10, resetMs: 50_000 }));
    await scene.pass(2_000);
    permitOf(scene.come('a2')).answered(200, null, reported({ remaining: 40, resetMs: 20_000 }));
    expect(scene.limiters.views()).toMatchObject([{ learned: [{ left: 40 }] }]);
  });

  test('count on less of a steady refill after others used it', async () => {
    const scene = openLimiters(learning);
    for (const remaining of [50, 20, 0]) {
      const permit = permitOf(scene.come(`a${remaining}`));
      permit.answered(200, null, reported({ remaining, resetMs: (60 - remaining) * 1_000 }));
      permit.release(null);
    }
    // Twice it was a tenth less than a request a second.
    const next = scene.come('b1');
    await scene.pass(1_234);
    expect(next.result).toBeNull();
    await scene.pass(1);
    expect(next.result).toMatchObject({ kind: 'acquired' });
  });

  test('ignore a report that is older than the last one', () => {
    const scene = openLimiters(learning);
    const older = permitOf(scene.come('a1'));
    permitOf(scene.come('a2')).answered(200, null, reported({ remaining: 2, resetMs: 58_000 }));
    older.answered(200, null, reported({ remaining: 30, resetMs: 30_000 }));
    expect(scene.limiters.views()).toMatchObject([{ learned: [{ left: 1 }] }]);
  });

  test('of tokens count what is expected of a request as long as it runs', async () => {
    const scene = openLimiters(learning);
    const tokens = { input: 100, output: 400 };
    const first = permitOf(scene.come('a1', { tokens }));
    const report = {
      name: 'tokens',
      counts: 'tokens',
      limit: 6_000,
      remaining: 1_000,
      resetMs: 50_000,
    } as const;
    first.answered(200, null, reported(report));
    expect(scene.limiters.views()).toMatchObject([{ learned: [{ name: 'tokens', left: 600 }] }]);
    const second = permitOf(scene.come('a2', { tokens }));
    expect(scene.limiters.views()).toMatchObject([{ learned: [{ left: 100 }] }]);
    second.release({ input: 100, output: 50 });
    expect(scene.limiters.views()).toMatchObject([{ learned: [{ left: 450 }] }]);
    first.release({ input: 90, output: 100 });
    expect(scene.limiters.views()).toMatchObject([{ learned: [{ left: 750 }] }]);
  });

  test('announce the wait that comes, also to a request that may take more than all of a limit', async () => {
    const scene = openLimiters({ far: { learnLimits: true, queueWaitMs: 30_000 } });
    const window = { counts: 'tokens', limit: 100, remaining: 89, resetMs: null, refill: 'window' } as const;
    const first = permitOf(scene.come('a1', { tokens: { input: 0, output: 11 } }));
    first.answered(200, null, reported(window));
    first.release({ input: 0, output: 11 });
    const large = scene.come('b1', { tokens: { input: 0, output: 5_000 } });
    await scene.pass(0);
    expect(large.result).toMatchObject({ kind: 'full', expectedMs: 60_000 });
    await scene.pass(60_000);
    permitOf(scene.come('b2', { tokens: { input: 0, output: 5_000 } }));
  });

  test('are not kept where they are not to be learned', () => {
    const scene = openLimiters({ far: { maxInFlight: 20 } });
    permitOf(scene.come('a1')).answered(200, null, reported({ remaining: 0, resetMs: 60_000 }));
    expect(scene.limiters.views()).toMatchObject([{ learned: [], learnedInFlight: null }]);
    expect(enterMany(scene, 9)).toBe(9);
  });
});

describe('refusals without a reason', () => {
  test('halve the requests in progress, after a pause, and answers bring them back one by one', async () => {
    const scene = openLimiters(learning);
    const permits = ['a1', 'a2', 'a3', 'a4'].map((id) => permitOf(scene.come(id)));
    const [first, second, third, fourth] = permits;
    first?.answered(200, null, null);
    const refused = Array.from({ length: 4 }, (_, number) => permitOf(scene.come(`b${number}`)));
    for (const permit of refused) {
      permit.answered(429, null, null);
      permit.release({ input: 0, output: 0 });
    }
    // Eight were in progress when the first one of one round was refused.
    expect(scene.limiters.views()).toMatchObject([
      { learnedInFlight: 4, maxInFlight: 4, pauses: [{ pausedMs: 1_000 }] },
    ]);
    const waiting = ['c1', 'c2', 'c3', 'c4', 'c5'].map((id) => scene.come(id));
    for (const permit of [first, second, third, fourth]) permit?.release(null);
    await scene.pass(999);
    expect(waiting.filter(({ result }) => result !== null)).toHaveLength(0);
    await scene.pass(1);
    expect(waiting.filter(({ result }) => result !== null)).toHaveLength(4);
    for (const came of waiting.slice(0, 4)) permitOf(came).answered(200, null, null);
    await scene.pass(0);
    expect(scene.limiters.views()).toMatchObject([{ learnedInFlight: 4, inFlight: 4 }]);
    for (const came of waiting.slice(0, 4)) permitOf(came).release(null);
    await scene.pass(0);
    permitOf(waiting[4] as (typeof waiting)[0]).answered(200, null, null);
    expect(scene.limiters.views()).toMatchObject([{ learnedInFlight: 5 }]);
  });

  test('pause for longer each time, at most for half a minute, until one is answered', async () => {
    const scene = openLimiters(learning);
    const pauses: unknown[] = [];
    for (let number = 0; number < 7; number++) {
      const permit = permitOf(scene.come(`a${number}`));
      permit.answered(429, null, null);
      permit.release({ input: 0, output: 0 });
      const pausedMs = scene.limiters.views()[0]?.pauses[0]?.pausedMs ?? 0;
      pauses.push(pausedMs);
      await scene.pass(pausedMs);
    }
    expect(pauses).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
    permitOf(scene.come('b1')).answered(200, null, null);
    permitOf(scene.come('c1', { upstreams: ['other'] }));
    expect(scene.limiters.views()).toMatchObject([{ learnedInFlight: 2, pauses: [] }]);
  });
});

import { describe, expect, test } from 'vitest';
import type { LimitReport, ReportedLimit } from '../../../src/protocol/upstream/limit-headers.ts';
import { openRooms, placeOf } from '../../support/room-scene.ts';
import type { Came, RoomScene } from '../../support/room-scene.ts';

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
function enterMany({ come }: RoomScene, count: number, prefix = 'b'): number {
  const came = Array.from({ length: count }, (_, number) => come(`${prefix}${number}`));
  return came.filter(({ entry }) => entry !== null).length;
}

describe('limits that answers report', () => {
  test('are unknown before the first answer: four requests are sent', async () => {
    const scene = openRooms(learning);
    const first = placeOf(scene.come('a1'));
    expect(enterMany(scene, 9)).toBe(3);
    expect(scene.rooms.views()).toMatchObject([{ maxInFlight: 4, waiting: 6, learned: [] }]);
    first.answered(200, null, null);
    await scene.pass(0);
    expect(scene.rooms.views()).toMatchObject([{ maxInFlight: null, waiting: 0, inFlight: 10 }]);
  });

  test('are kept: as many requests are sent as are left', () => {
    const scene = openRooms(learning);
    placeOf(scene.come('a1')).answered(200, null, reported({ remaining: 3, resetMs: 57_000 }));
    expect(scene.rooms.views()).toMatchObject([{ learned: [{ name: 'requests', limit: 60, left: 3 }] }]);
    expect(enterMany(scene, 9)).toBe(3);
  });

  test('are used by none that was not sent, neither at once nor in a later report', () => {
    const scene = openRooms(learning);
    const window = { refill: 'window', resetMs: 60_000 } as const;
    const answered = placeOf(scene.come('a1'));
    answered.answered(200, null, reported({ ...window, remaining: 2 }));
    for (let count = 0; count < 3; count++) placeOf(scene.come('b1')).withdraw();
    const [unsent, later] = [placeOf(scene.come('c1')), placeOf(scene.come('d1'))];
    unsent.withdraw();
    later.answered(200, null, reported({ ...window, remaining: 1 }));
    expect(enterMany(scene, 9, 'e')).toBe(1);
  });

  test('that last for days are tried by a request that is sent: one that is not leaves it to the next', async () => {
    const scene = openRooms({ far: { learnLimits: true, queueWaitMs: 3_600_000 } });
    const first = placeOf(scene.come('a1'));
    first.answered(200, null, reported({ limit: 10, remaining: 0, resetMs: 31 * 86_400_000 }));
    first.leave(null);
    const [unsent, next] = ['b1', 'c1'].map((id) => scene.come(id)) as [Came, Came];
    await scene.pass(600_000);
    expect(next.entry).toBeNull();
    placeOf(unsent).withdraw();
    await scene.pass(0);
    expect(next.entry).toMatchObject({ kind: 'entered' });
  });

  test('leave room at the rate at which they come back', async () => {
    const scene = openRooms(learning);
    placeOf(scene.come('a1')).answered(200, null, reported({ remaining: 0, resetMs: 60_000 }));
    const came = ['b1', 'b2'].map((id) => scene.come(id));
    await scene.pass(999);
    expect(came.map(({ entry }) => entry?.kind)).toEqual([undefined, undefined]);
    await scene.pass(1);
    expect(came.map(({ entry }) => entry?.kind)).toEqual(['entered', undefined]);
    await scene.pass(1_000);
    expect(came.map(({ entry }) => entry?.kind)).toEqual(['entered', 'entered']);
  });

  test('have the period that their reset shows, such as a day', async () => {
    const scene = openRooms({ far: { learnLimits: true, queueWaitMs: 7_200_000 } });
    // 14,400 a day are one in 6 s: 14,400 used ones are back in a day.
    const report = reported({ limit: 14_400, remaining: 0, resetMs: 86_400_000 });
    placeOf(scene.come('a1')).answered(200, null, report);
    const next = scene.come('b1');
    await scene.pass(5_999);
    expect(next.entry).toBeNull();
    await scene.pass(1);
    expect(next.entry).toMatchObject({ kind: 'entered' });
  });

  test('that last for days are tried after ten minutes, by one request at a time', async () => {
    const scene = openRooms({ far: { learnLimits: true, queueWaitMs: 7_200_000 } });
    const report = reported({ limit: 10, remaining: 0, resetMs: 31 * 86_400_000 });
    const first = placeOf(scene.come('a1'));
    first.answered(200, null, report);
    first.leave({ input: 0, output: 0 });
    const came = ['b1', 'b2'].map((id) => scene.come(id));
    expect(scene.rooms.waiting('b1')).toMatchObject({ expectedMs: 600_000 });
    await scene.pass(599_999);
    expect(came.map(({ entry }) => entry)).toEqual([null, null]);
    await scene.pass(1);
    expect(came.map(({ entry }) => entry?.kind)).toEqual(['entered', undefined]);
    const trial = placeOf(came[0] as Came);
    trial.answered(200, null, reported({ limit: 1_000, remaining: 900, resetMs: 6_000 }));
    await scene.pass(0);
    expect(came.map(({ entry }) => entry?.kind)).toEqual(['entered', 'entered']);
  });

  test('let a request wait for tokens that those in progress may leave over', async () => {
    const scene = openRooms({ far: { learnLimits: true, queueWaitMs: 3_000 } });
    const tokens = { input: 0, output: 500 };
    const first = placeOf(scene.come('a1', { tokens }));
    const report = reported({
      name: 'tokens',
      counts: 'tokens',
      limit: 1_000,
      remaining: 600,
      refill: 'window',
      resetMs: 50_000,
    });
    first.answered(200, null, report);
    first.leave({ input: 0, output: 0 });
    const running = placeOf(scene.come('a2', { tokens }));
    const next = scene.come('a3', { tokens });
    expect(next.entry).toBeNull();
    running.leave({ input: 0, output: 10 });
    await scene.pass(0);
    expect(next.entry).toMatchObject({ kind: 'entered' });
  });

  test('of a window come back at its end, and not before', async () => {
    const scene = openRooms(learning);
    const report = reported({
      limit: 5,
      remaining: 1,
      resetMs: 20_000,
      resolutionMs: 1_000,
      refill: 'window',
    });
    placeOf(scene.come('a1')).answered(200, null, report);
    expect(enterMany(scene, 9)).toBe(1);
    await scene.pass(20_999);
    expect(scene.entered).toHaveLength(2);
    await scene.pass(1);
    // The one that has had no answer may be counted in the new window.
    expect(scene.entered).toHaveLength(6);
  });

  test('of a window without a known end are over a minute after it was first seen', async () => {
    const scene = openRooms(learning);
    const report = reported({ limit: 2, remaining: 1, resetMs: null, refill: 'window' });
    placeOf(scene.come('a1')).answered(200, null, report);
    await scene.pass(30_000);
    placeOf(scene.come('a2')).answered(
      200,
      null,
      reported({ limit: 2, remaining: 0, resetMs: null, refill: 'window' }),
    );
    const next = scene.come('a3');
    await scene.pass(29_999);
    expect(next.entry).toBeNull();
    await scene.pass(1);
    expect(next.entry).toMatchObject({ kind: 'entered' });
  });

  test('are a window where the end stays where it is, whatever their headers usually mean', async () => {
    const scene = openRooms(learning);
    for (const [number, remaining] of [50, 40, 30, 0].entries()) {
      const place = placeOf(scene.come(`a${number}`));
      place.answered(200, null, reported({ remaining, resetMs: 40_000 - number * 1_000 }));
      place.leave(null);
      await scene.pass(1_000);
    }
    const next = scene.come('b1');
    // With a steady refill the next one would be there a second later.
    await scene.pass(36_000);
    expect(next.entry).toBeNull();
    await scene.pass(1);
    expect(next.entry).toMatchObject({ kind: 'entered' });
  });

  test('count what the report cannot have seen', () => {
    const scene = openRooms(learning);
    const first = placeOf(scene.come('a1'));
    const second = placeOf(scene.come('a2'));
    placeOf(scene.come('a3'));
    // Of three requests that were sent, two have no answer yet: they may be missing in this report.
    first.answered(200, null, reported({ remaining: 5, resetMs: 55_000 }));
    expect(scene.rooms.views()).toMatchObject([{ learned: [{ left: 3 }] }]);
    second.answered(200, null, reported({ remaining: 4, resetMs: 56_000 }));
    expect(scene.rooms.views()).toMatchObject([{ learned: [{ left: 3 }] }]);
  });

  test('follow what others use of the same account', async () => {
    const scene = openRooms(learning);
    placeOf(scene.come('a1')).answered(200, null, reported({ remaining: 50, resetMs: 10_000 }));
    await scene.pass(2_000);
    const next = placeOf(scene.come('a2'));
    expect(scene.rooms.views()).toMatchObject([{ learned: [{ left: 51 }] }]);
    next.answered(200, null, reported({ remaining: 7, resetMs: 53_000 }));
    expect(scene.rooms.views()).toMatchObject([{ learned: [{ left: 7 }] }]);
  });

  test('follow an upstream that counts less than was expected', async () => {
    const scene = openRooms(learning);
    placeOf(scene.come('a1')).answered(200, null, reported({ remaining: 10, resetMs: 50_000 }));
    await scene.pass(2_000);
    placeOf(scene.come('a2')).answered(200, null, reported({ remaining: 40, resetMs: 20_000 }));
    expect(scene.rooms.views()).toMatchObject([{ learned: [{ left: 40 }] }]);
  });

  test('count on less of a steady refill after others used it', async () => {
    const scene = openRooms(learning);
    for (const remaining of [50, 20, 0]) {
      const place = placeOf(scene.come(`a${remaining}`));
      place.answered(200, null, reported({ remaining, resetMs: (60 - remaining) * 1_000 }));
      place.leave(null);
    }
    // Twice it was a tenth less than a request a second.
    const next = scene.come('b1');
    await scene.pass(1_234);
    expect(next.entry).toBeNull();
    await scene.pass(1);
    expect(next.entry).toMatchObject({ kind: 'entered' });
  });

  test('ignore a report that is older than the last one', () => {
    const scene = openRooms(learning);
    const older = placeOf(scene.come('a1'));
    placeOf(scene.come('a2')).answered(200, null, reported({ remaining: 2, resetMs: 58_000 }));
    older.answered(200, null, reported({ remaining: 30, resetMs: 30_000 }));
    expect(scene.rooms.views()).toMatchObject([{ learned: [{ left: 1 }] }]);
  });

  test('of tokens count what is expected of a request as long as it runs', async () => {
    const scene = openRooms(learning);
    const tokens = { input: 100, output: 400 };
    const first = placeOf(scene.come('a1', { tokens }));
    const report = {
      name: 'tokens',
      counts: 'tokens',
      limit: 6_000,
      remaining: 1_000,
      resetMs: 50_000,
    } as const;
    first.answered(200, null, reported(report));
    expect(scene.rooms.views()).toMatchObject([{ learned: [{ name: 'tokens', left: 600 }] }]);
    const second = placeOf(scene.come('a2', { tokens }));
    expect(scene.rooms.views()).toMatchObject([{ learned: [{ left: 100 }] }]);
    second.leave({ input: 100, output: 50 });
    expect(scene.rooms.views()).toMatchObject([{ learned: [{ left: 450 }] }]);
    first.leave({ input: 90, output: 100 });
    expect(scene.rooms.views()).toMatchObject([{ learned: [{ left: 750 }] }]);
  });

  test('announce the wait that comes, also to a request that may take more than all of a limit', async () => {
    const scene = openRooms({ far: { learnLimits: true, queueWaitMs: 30_000 } });
    const window = { counts: 'tokens', limit: 100, remaining: 89, resetMs: null, refill: 'window' } as const;
    const first = placeOf(scene.come('a1', { tokens: { input: 0, output: 11 } }));
    first.answered(200, null, reported(window));
    first.leave({ input: 0, output: 11 });
    const large = scene.come('b1', { tokens: { input: 0, output: 5_000 } });
    await scene.pass(0);
    expect(large.entry).toMatchObject({ kind: 'full', expectedMs: 60_000 });
    await scene.pass(60_000);
    placeOf(scene.come('b2', { tokens: { input: 0, output: 5_000 } }));
  });

  test('are not kept where they are not to be learned', () => {
    const scene = openRooms({ far: { maxInFlight: 20 } });
    placeOf(scene.come('a1')).answered(200, null, reported({ remaining: 0, resetMs: 60_000 }));
    expect(scene.rooms.views()).toMatchObject([{ learned: [], learnedInFlight: null }]);
    expect(enterMany(scene, 9)).toBe(9);
  });
});

describe('refusals without a reason', () => {
  test('halve the requests in progress, after a pause, and answers bring them back one by one', async () => {
    const scene = openRooms(learning);
    const places = ['a1', 'a2', 'a3', 'a4'].map((id) => placeOf(scene.come(id)));
    const [first, second, third, fourth] = places;
    first?.answered(200, null, null);
    const refused = Array.from({ length: 4 }, (_, number) => placeOf(scene.come(`b${number}`)));
    for (const place of refused) {
      place.answered(429, null, null);
      place.leave({ input: 0, output: 0 });
    }
    // Eight were in progress when the first one of one round was refused.
    expect(scene.rooms.views()).toMatchObject([
      { learnedInFlight: 4, maxInFlight: 4, pauses: [{ pausedMs: 1_000 }] },
    ]);
    const waiting = ['c1', 'c2', 'c3', 'c4', 'c5'].map((id) => scene.come(id));
    for (const place of [first, second, third, fourth]) place?.leave(null);
    await scene.pass(999);
    expect(waiting.filter(({ entry }) => entry !== null)).toHaveLength(0);
    await scene.pass(1);
    expect(waiting.filter(({ entry }) => entry !== null)).toHaveLength(4);
    for (const came of waiting.slice(0, 4)) placeOf(came).answered(200, null, null);
    await scene.pass(0);
    expect(scene.rooms.views()).toMatchObject([{ learnedInFlight: 4, inFlight: 4 }]);
    for (const came of waiting.slice(0, 4)) placeOf(came).leave(null);
    await scene.pass(0);
    placeOf(waiting[4] as (typeof waiting)[0]).answered(200, null, null);
    expect(scene.rooms.views()).toMatchObject([{ learnedInFlight: 5 }]);
  });

  test('pause for longer each time, at most for half a minute, until one is answered', async () => {
    const scene = openRooms(learning);
    const pauses: unknown[] = [];
    for (let number = 0; number < 7; number++) {
      const place = placeOf(scene.come(`a${number}`));
      place.answered(429, null, null);
      place.leave({ input: 0, output: 0 });
      const pausedMs = scene.rooms.views()[0]?.pauses[0]?.pausedMs ?? 0;
      pauses.push(pausedMs);
      await scene.pass(pausedMs);
    }
    expect(pauses).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
    placeOf(scene.come('b1')).answered(200, null, null);
    placeOf(scene.come('c1', { upstreams: ['other'] }));
    expect(scene.rooms.views()).toMatchObject([{ learnedInFlight: 2, pauses: [] }]);
  });
});

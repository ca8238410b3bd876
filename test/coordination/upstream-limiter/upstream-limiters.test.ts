import { describe, expect, test } from 'vitest';
import type { Permit } from '../../../src/domain/ports/upstream-limiters.ts';
import { at, openLimiters, permitOf, limiterSettings } from '../../support/limiter-scene.ts';

const minuteMs = 60_000;

describe('a limiter of an upstream', () => {
  test('is entered at once, without a promise, as long as there is a permit', () => {
    const { limiters, come } = openLimiters({ far: { maxInFlight: 2 } });
    expect(limiters.limits(at('far'))).toBe(true);
    expect(limiters.limits(at('other'))).toBe(false);
    expect([come('a1'), come('a2')].map(({ result }) => result)).toMatchObject([
      { kind: 'acquired', waitedMs: 0, expectedMs: 0, permit: { upstream: 'far' } },
      { kind: 'acquired', waitedMs: 0, expectedMs: 0, permit: { upstream: 'far' } },
    ]);
    expect(come('a3').result).toBeNull();
    expect(limiters.views()).toMatchObject([{ upstream: 'far', inFlight: 2, maxInFlight: 2, waiting: 1 }]);
  });

  test('lets the next one in when a permit is left, and tells how long it waited', async () => {
    const { come, pass } = openLimiters({ far: { maxInFlight: 1 } });
    const first = permitOf(come('a1'));
    const second = come('a2');
    await pass(250);
    expect(second.result).toBeNull();
    first.release(null);
    // A second call must not make limiter for two.
    first.release(null);
    const third = come('a3');
    await pass(0);
    expect(second.result).toMatchObject({ kind: 'acquired', waitedMs: 250 });
    expect(third.result).toBeNull();
  });

  test('gives the start and the turn back of a request that was not sent', async () => {
    const { limiters, come, pass } = openLimiters({ far: { maxInFlight: 1, requestsPerMinute: 2 } });
    const unsent = permitOf(come('a1'));
    const [second, other] = [come('a2'), come('b1')];
    unsent.releaseUnused();
    unsent.releaseUnused();
    await pass(0);
    // The key has had no turn yet.
    expect(second.result).toMatchObject({ kind: 'acquired' });
    permitOf(second).release(null);
    await pass(0);
    permitOf(other).release(null);
    expect(limiters.views()).toMatchObject([{ inFlight: 0, startsLeft: 0 }]);
  });

  test('serves keys in turn, and the requests of a key in their order', async () => {
    const { come, pass, acquired } = openLimiters({ far: { maxInFlight: 1 } });
    const came = ['a1', 'a2', 'a3', 'a4', 'b1', 'c1', 'b2'].map((id) => come(id));
    for (const request of came.map((_, turn) => turn)) {
      await pass(10);
      const running = came.find(({ id }) => id === acquired[request]);
      if (running === undefined) throw new Error('nothing entered');
      permitOf(running).release(null);
    }
    expect(acquired).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3', 'a4']);
  });

  test('gives a key of twice the weight twice as many turns', async () => {
    const { come, pass, acquired } = openLimiters({ far: { maxInFlight: 1 } });
    const came = Array.from({ length: 30 }, (_, number) =>
      number % 2 === 0 ? come(`a${number}`, { weight: 2 }) : come(`b${number}`),
    );
    for (let turn = 0; turn < 15; turn++) {
      await pass(10);
      const running = came.find(({ id }) => id === acquired[turn]);
      if (running !== undefined) permitOf(running).release(null);
    }
    expect(acquired.slice(0, 15).filter((id) => id.startsWith('a'))).toHaveLength(10);
  });

  test('quotas scarce tokens by tokens: a key with large requests gets fewer of them', async () => {
    const { come, pass, acquired } = openLimiters({ far: { maxInFlight: 1, tokensPerMinute: 1_000_000 } });
    const came = Array.from({ length: 40 }, (_, number) =>
      number % 2 === 0
        ? come(`a${number}`, { tokens: { input: 300, output: 100 } })
        : come(`b${number}`, { tokens: { input: 60, output: 40 } }),
    );
    for (let turn = 0; turn < 20; turn++) {
      await pass(10);
      const running = came.find(({ id }) => id === acquired[turn]);
      if (running !== undefined)
        permitOf(running).release(
          running.id.startsWith('a') ? { input: 300, output: 100 } : { input: 60, output: 40 },
        );
    }
    expect(acquired.slice(0, 20).filter((id) => id.startsWith('a'))).toHaveLength(4);
  });

  test('charges a key what it used rather than what was expected', async () => {
    const { come, pass, acquired } = openLimiters({ far: { maxInFlight: 1, tokensPerMinute: 1_000_000 } });
    const came = Array.from({ length: 40 }, (_, number) =>
      come(`${number % 2 === 0 ? 'a' : 'b'}${number}`, { tokens: { input: 100, output: 900 } }),
    );
    for (let turn = 0; turn < 20; turn++) {
      await pass(10);
      const running = came.find(({ id }) => id === acquired[turn]);
      if (running !== undefined)
        permitOf(running).release({ input: 100, output: running.id.startsWith('a') ? 900 : 150 });
    }
    expect(acquired.slice(0, 20).filter((id) => id.startsWith('a'))).toHaveLength(4);
  });

  test('refuses at once when its queue is full, or nothing may wait', () => {
    const { come } = openLimiters({ far: { maxInFlight: 1, queue: 2 } });
    for (const id of ['a1', 'a2', 'a3']) come(id);
    expect(come('b1').result).toEqual({
      kind: 'full',
      isTooLong: false,
      upstreams: ['far'],
      models: [],
      waiting: 2,
      expectedMs: 0,
    });
    const impatient = openLimiters({ far: { maxInFlight: 1, queueWaitMs: 0 } });
    impatient.come('a1');
    expect(impatient.come('a2').result).toEqual({
      kind: 'full',
      isTooLong: true,
      upstreams: ['far'],
      models: [],
      waiting: 0,
      expectedMs: 0,
    });
  });

  test('ends a wait that lasts too long, which costs its key nothing', async () => {
    const { come, pass, acquired, clock } = openLimiters({ far: { maxInFlight: 1, queueWaitMs: 1_000 } });
    const first = permitOf(come('x1'));
    const late = ['a1', 'a2'].map((id) => come(id));
    await pass(999);
    expect(late.map(({ result }) => result)).toEqual([null, null]);
    const last = come('b1');
    await pass(1);
    expect(late.map(({ result }) => result)).toMatchObject([
      { kind: 'timed_out', waitedMs: 1_000, waiting: 2 },
      { kind: 'timed_out', waitedMs: 1_000, waiting: 1 },
    ]);
    const again = come('a3');
    first.release(null);
    await pass(0);
    permitOf(last).release(null);
    await pass(0);
    permitOf(again).release(null);
    expect(acquired).toEqual(['x1', 'b1', 'a3']);
    expect(clock.scheduled).toBe(0);
  });

  test('counts earlier waits of a request towards its time', async () => {
    const { come, pass } = openLimiters({ far: { maxInFlight: 1, queueWaitMs: 1_000 } });
    come('a1');
    const second = come('a2', { waitedMs: 400 });
    await pass(599);
    expect(second.result).toBeNull();
    await pass(1);
    expect(second.result).toMatchObject({ kind: 'timed_out', waitedMs: 600 });
    expect(come('a3', { waitedMs: 1_000 }).result).toMatchObject({ kind: 'timed_out', waitedMs: 0 });
  });

  test('forgets a request that is interrupted, and refuses one that was before it came', async () => {
    const { come, pass, limiters, clock } = openLimiters({ far: { maxInFlight: 1 } });
    const first = permitOf(come('a1'));
    const second = come('a2');
    expect(limiters.waiting('a2')).toMatchObject({ position: 1, upstreams: ['far'] });
    second.abort.abort();
    await pass(0);
    expect(second.result).toEqual({ kind: 'interrupted' });
    expect(limiters.waiting('a2')).toBeNull();
    expect(limiters.views()).toMatchObject([{ waiting: 0 }]);
    first.release(null);
    expect(limiters.views()).toMatchObject([{ inFlight: 0 }]);
    expect(clock.scheduled).toBe(0);
    const gone = AbortSignal.abort();
    const request = {
      requestId: 'a3',
      keyId: 'a',
      weight: 1,
      targets: [at('far')],
      tokens: { input: 0, output: 0 },
      waitedMs: 0,
    };
    expect(limiters.acquire(request, gone)).toEqual({ kind: 'interrupted' });
  });

  test('tells those that wait their position and the time to expect', async () => {
    const { come, pass, limiters } = openLimiters({ far: { maxInFlight: 1 } });
    const first = permitOf(come('a1'));
    first.answered(200, null, null);
    await pass(1_000);
    first.release(null);
    come('a2');
    await pass(400);
    for (const id of ['a3', 'a4', 'b1']) come(id);
    expect(limiters.waiting('b1')).toEqual({ position: 1, expectedMs: 600, upstreams: ['far'] });
    expect(limiters.waiting('a3')).toEqual({ position: 2, expectedMs: 1_600, upstreams: ['far'] });
    expect(limiters.waiting('a4')).toEqual({ position: 3, expectedMs: 2_600, upstreams: ['far'] });
    expect(limiters.views()).toMatchObject([{ waiting: 3, expectedMs: 3_600 }]);
  });
});

describe('a request that may go to several upstreams', () => {
  const two = { near: { maxInFlight: 1 }, far: { maxInFlight: 1 } };

  test('uses the first one with a free permit, and waits for none while another is free', () => {
    const { come } = openLimiters(two);
    expect(permitOf(come('a1')).upstream).toBe('near');
    expect(permitOf(come('a2')).upstream).toBe('far');
    expect(come('a3').result).toBeNull();
    expect(permitOf(come('a4', { upstreams: ['near', 'unlimited'] })).upstream).toBe('unlimited');
  });

  test('waits for all of them, and leaves all queues with the first permit', async () => {
    const { come, pass, limiters } = openLimiters(two);
    const near = permitOf(come('a1'));
    const far = permitOf(come('a2'));
    const both = come('a3');
    const later = come('a4', { upstreams: ['near'] });
    far.release(null);
    await pass(0);
    expect(permitOf(both).upstream).toBe('far');
    near.release(null);
    await pass(0);
    expect(permitOf(later).upstream).toBe('near');
    expect(limiters.views()).toMatchObject([{ waiting: 0 }, { waiting: 0 }]);
  });

  test('waits for one whose queue is full, too, as long as another queue is not', async () => {
    const { come, pass } = openLimiters({ near: { maxInFlight: 1, queue: 1 }, far: { maxInFlight: 1 } });
    const near = permitOf(come('a1'));
    come('a2');
    const first = come('a3', { upstreams: ['near'] });
    const both = come('a4');
    expect(come('b1', { upstreams: ['near'] }).result).toMatchObject({ kind: 'full', upstreams: ['near'] });
    near.release(null);
    await pass(0);
    permitOf(first).release(null);
    await pass(0);
    expect(permitOf(both).upstream).toBe('near');
  });

  test('lets another one in that only it held up elsewhere', async () => {
    const { come, pass } = openLimiters({ near: { maxInFlight: 1 }, far: { tokensPerMinute: 100 } });
    permitOf(come('a1', { upstreams: ['far'], tokens: { input: 50, output: 0 } }));
    const near = permitOf(come('a2'));
    const large = come('a3', { tokens: { input: 90, output: 0 } });
    const small = come('b1', { upstreams: ['far'], tokens: { input: 40, output: 0 } });
    expect([large.result, small.result]).toEqual([null, null]);
    near.release(null);
    await pass(0);
    expect(permitOf(large).upstream).toBe('near');
    expect(permitOf(small).upstream).toBe('far');
  });
});

describe('limits of a minute', () => {
  test('count starts for a minute and the jitter of their arrival', async () => {
    const { come, pass, limiters } = openLimiters({
      far: { requestsPerMinute: 2, queueWaitMs: 2 * minuteMs },
    });
    permitOf(come('a1')).release(null);
    await pass(10_000);
    permitOf(come('a2')).release(null);
    const [third, fourth] = [come('a3'), come('a4')];
    expect(limiters.waiting('a3')).toMatchObject({ expectedMs: 51_000 });
    expect(limiters.waiting('a4')).toMatchObject({ expectedMs: 61_000 });
    expect(limiters.views()).toMatchObject([{ startsLeft: 0, tokensLeft: null }]);
    await pass(50_999);
    expect(third.result).toBeNull();
    await pass(1);
    expect(third.result).toMatchObject({ kind: 'acquired', waitedMs: 51_000, expectedMs: 51_000 });
    await pass(9_999);
    expect(fourth.result).toBeNull();
    await pass(1);
    expect(fourth.result).toMatchObject({ kind: 'acquired', expectedMs: 61_000 });
  });

  test('count tokens as expected while a request runs, and as used afterwards', async () => {
    const { come, pass, limiters } = openLimiters({
      far: { tokensPerMinute: 1_000, queueWaitMs: 2 * minuteMs },
    });
    const first = permitOf(come('a1', { tokens: { input: 100, output: 700 } }));
    const second = come('a2', { tokens: { input: 100, output: 300 } });
    await pass(5_000);
    expect(limiters.views()).toMatchObject([{ tokensLeft: 200, startsLeft: null }]);
    expect(second.result).toBeNull();
    first.release({ input: 100, output: 500 });
    // Twice given back, the tokens of the second one would seem to be free.
    first.release({ input: 100, output: 500 });
    await pass(0);
    expect(limiters.views()).toMatchObject([{ tokensLeft: 0 }]);
    permitOf(second).release({ input: 100, output: 300 });
    const third = come('a3', { tokens: { input: 600, output: 0 } });
    await pass(60_999);
    expect(third.result).toBeNull();
    await pass(1);
    expect(third.result).toMatchObject({ kind: 'acquired', expectedMs: 61_000 });
  });

  test('let a request in alone that expects more tokens than a minute has', async () => {
    const { come, pass } = openLimiters({ far: { tokensPerMinute: 100, queueWaitMs: 2 * minuteMs } });
    permitOf(come('a1', { tokens: { input: 1, output: 0 } })).release({ input: 1, output: 0 });
    const large = come('a2', { tokens: { input: 5_000, output: 0 } });
    expect(large.result).toBeNull();
    await pass(61_000);
    expect(large.result).toMatchObject({ kind: 'acquired' });
  });

  test('refuse at once what would surely wait for longer than it may', () => {
    const { come } = openLimiters({ far: { requestsPerMinute: 1, queueWaitMs: 30_000 } });
    come('a1');
    expect(come('a2').result).toEqual({
      kind: 'full',
      isTooLong: true,
      upstreams: ['far'],
      models: [],
      waiting: 0,
      expectedMs: 61_000,
    });
  });

  test('let a request wait for tokens that those in progress may leave over', async () => {
    const { come, pass } = openLimiters({ far: { tokensPerMinute: 200, queueWaitMs: 3_000 } });
    const tokens = { input: 30, output: 50 };
    permitOf(come('a1', { tokens })).release({ input: 5, output: 45 });
    const running = permitOf(come('a2', { tokens }));
    const next = come('a3', { tokens });
    expect(next.result).toBeNull();
    running.release({ input: 5, output: 15 });
    await pass(0);
    expect(next.result).toMatchObject({ kind: 'acquired' });
    // Of what is used nothing comes back in time, whatever those in progress leave over.
    expect(come('a4', { tokens: { input: 30, output: 101 } }).result).toMatchObject({ kind: 'full' });
  });

  test('refuse at once even while all permits are taken', () => {
    const limits = { maxInFlight: 1, requestsPerMinute: 1, queueWaitMs: 30_000 };
    const { come } = openLimiters({ far: limits });
    come('a1');
    expect(come('a2').result).toMatchObject({ kind: 'full', waiting: 0 });
  });
});

describe('the wait that is expected', () => {
  test('is at least in proportion to how long the first requests take that have not ended', async () => {
    const { come, pass, limiters } = openLimiters({ far: { maxInFlight: 1 } });
    come('a1');
    come('a2');
    await pass(4_000);
    expect(limiters.waiting('a2')).toMatchObject({ position: 1, expectedMs: 4_000 });
    come('a3');
    expect(limiters.waiting('a3')).toMatchObject({ position: 2, expectedMs: 8_000 });
  });
});

describe('settings that change', () => {
  test('serve those that wait at once, and leave those in progress where they are', async () => {
    const { come, pass, limiters } = openLimiters({ far: { maxInFlight: 1 } });
    const permits = [permitOf(come('a1'))];
    const came = ['a2', 'a3', 'a4'].map((id) => come(id));
    limiters.configure(new Map([['far', limiterSettings({ maxInFlight: 3 })]]));
    await pass(0);
    expect(came.map(({ result }) => result?.kind)).toEqual(['acquired', 'acquired', undefined]);
    limiters.configure(new Map([['far', limiterSettings({ maxInFlight: 1 })]]));
    for (const permit of [...permits, ...came.slice(0, 1).map(permitOf)]) permit.release(null);
    await pass(0);
    expect(came[2]?.result).toBeNull();
    for (const permit of came.slice(1, 2).map(permitOf)) permit.release(null);
    await pass(0);
    expect(came[2]?.result).toMatchObject({ kind: 'acquired' });
  });

  test('count what those that wait cost anew, where tokens are no longer scarce', async () => {
    const { come, pass, limiters, acquired } = openLimiters({
      far: { maxInFlight: 1, tokensPerMinute: 1_000_000 },
    });
    const tokens = { input: 3_000, output: 1_000 };
    const came = ['a1', 'a2', 'a3'].map((id) => come(id, { tokens }));
    limiters.configure(new Map([['far', limiterSettings({ maxInFlight: 1 })]]));
    came.push(...['b1', 'b2', 'b3', 'b4'].map((id) => come(id, { tokens })));
    for (let turn = 0; turn < came.length; turn++) {
      await pass(10);
      for (const running of came.filter(({ id }) => id === acquired[turn])) permitOf(running).release(null);
    }
    expect(acquired).toEqual(['a1', 'a2', 'b1', 'a3', 'b2', 'b3', 'b4']);
  });

  test('give permits to all whose upstream has no limits any more, and add limiters', async () => {
    const { come, pass, limiters, clock } = openLimiters({
      far: { requestsPerMinute: 1, queueWaitMs: 90_000 },
    });
    // Its pause is no limit of the config, but it must not hold up requests that no timer looks at again.
    permitOf(come('a1')).answered(429, 20_000, null);
    const came = ['a2', 'a3'].map((id) => come(id));
    limiters.configure(new Map([['near', limiterSettings({ maxInFlight: 1 })]]));
    await pass(0);
    expect(came.map(({ result }) => result?.kind)).toEqual(['acquired', 'acquired']);
    expect([limiters.limits(at('far')), limiters.limits(at('near'))]).toEqual([false, true]);
    expect(clock.scheduled).toBe(0);
  });
});

describe('a process that shares limits with others', () => {
  const quotaOf = (quotas: Readonly<Record<string, number>>) => {
    const refreshes: number[] = [];
    return {
      refreshes,
      quotas: { of: (_: string, limit: string) => quotas[limit] ?? 0, refresh: () => void refreshes.push(1) },
    };
  };

  test('uses no more than its quota, and goes on when that has grown', async () => {
    const own = { maxInFlight: 1 };
    const { quotas, refreshes } = quotaOf(own);
    const { come, pass, limiters } = openLimiters({ far: { maxInFlight: 4 } }, { quotas });
    permitOf(come('a1'));
    expect(refreshes).toHaveLength(0);
    const next = come('a2');
    expect(refreshes).toHaveLength(1);
    expect(limiters.uses()).toEqual([
      { upstream: 'far', limit: 'maxInFlight', most: 4, used: 1, waiting: 1 },
    ]);
    expect(limiters.views()).toMatchObject([{ maxInFlight: 1 }]);
    own.maxInFlight = 2;
    await pass(100);
    expect(next.result).toBeNull();
    limiters.serve();
    await pass(0);
    permitOf(next).release(null);
    expect(refreshes).toHaveLength(2);
  });

  test('divides the limits of a minute, too, and what is counted of them', async () => {
    const own = { requestsPerMinute: 1, tokensPerMinute: 500 };
    const { quotas } = quotaOf(own);
    const limits = { requestsPerMinute: 60, tokensPerMinute: 6_000 };
    const { come, pass, limiters } = openLimiters({ far: limits }, { quotas });
    const tokens = { input: 100, output: 200 };
    permitOf(come('a1', { tokens }));
    const waiting = [come('a2', { tokens }), come('a3', { tokens: { input: 9_000, output: 0 } })];
    expect(limiters.uses()).toEqual([
      { upstream: 'far', limit: 'requestsPerMinute', most: 60, used: 1, waiting: 2 },
      { upstream: 'far', limit: 'tokensPerMinute', most: 6_000, used: 300, waiting: 6_000 },
    ]);
    own.requestsPerMinute = 30;
    limiters.serve();
    await pass(0);
    expect(waiting[0]?.result).toBeNull();
    own.tokensPerMinute = 600;
    limiters.serve();
    await pass(0);
    expect(waiting.map(({ result }) => result?.kind)).toEqual(['acquired', undefined]);
  });

  test('lets a request wait a moment for its quota that may not wait for others', async () => {
    const own = { maxInFlight: 0 };
    const { quotas } = quotaOf(own);
    const { come, pass, limiters } = openLimiters({ far: { maxInFlight: 1, queueWaitMs: 0 } }, { quotas });
    const first = come('a1');
    const second = come('a2');
    await pass(1_499);
    own.maxInFlight = 1;
    limiters.serve();
    await pass(1);
    expect(first.result).toMatchObject({ kind: 'acquired', waitedMs: 1_499 });
    expect(second.result).toMatchObject({ kind: 'timed_out', waitedMs: 1_500 });
    // Now it is the limit that has no permit left.
    expect(come('a3').result).toMatchObject({ kind: 'full' });
  });

  test('has no queue for a request that acquires a free permit or none, and asks for a quota for it', async () => {
    const own = { maxInFlight: 0 };
    const { quotas, refreshes } = quotaOf(own);
    const { pass, limiters } = openLimiters({ far: { maxInFlight: 1 } }, { quotas });
    const brief = { keyId: 'a', weight: 1, targets: [at('far')], tokens: { input: 1, output: 1 } };
    expect(limiters.tryAcquire(brief)).toBeNull();
    expect([refreshes.length, limiters.views()]).toMatchObject([1, [{ waiting: 0 }]]);
    // The need is told once: the request is gone.
    expect([limiters.uses(), limiters.uses()]).toMatchObject([[{ waiting: 1 }], [{ waiting: 0 }]]);
    own.maxInFlight = 1;
    limiters.serve();
    await pass(0);
    expect(limiters.tryAcquire(brief)).toMatchObject({ upstream: 'far' });
    // Now it is the limit that has no permit left, of which another quota is no help.
    expect(limiters.tryAcquire(brief)).toBeNull();
    expect(refreshes).toHaveLength(1);
  });
});

describe('a pause', () => {
  test('is kept that a refusing answer asks for, and not one of an answer that succeeds', async () => {
    const { come, pass, limiters } = openLimiters({ far: { maxInFlight: 9 } });
    permitOf(come('a1')).answered(200, 20_000, null);
    expect(come('a2').result).toMatchObject({ kind: 'acquired' });
    permitOf(come('a3')).answered(429, 2_000, null);
    const held = come('a4');
    expect(limiters.waiting('a4')).toMatchObject({ expectedMs: 2_000 });
    expect(limiters.views()).toMatchObject([{ pausedMs: 0, pauses: [{ model: 'usual', pausedMs: 2_000 }] }]);
    await pass(1_999);
    expect(held.result).toBeNull();
    await pass(1);
    expect(held.result).toMatchObject({ kind: 'acquired', waitedMs: 2_000 });
  });

  test('ends after a minute, however long it was asked for', async () => {
    const { come, pass } = openLimiters({ far: { maxInFlight: 9, queueWaitMs: 90_000 } });
    permitOf(come('a1')).answered(429, 600_000, null);
    const held = come('a2');
    await pass(minuteMs);
    expect(held.result).toMatchObject({ kind: 'acquired', waitedMs: minuteMs });
  });

  test('that was asked for longer is ended by one request: the others wait for its answer', async () => {
    const { come, pass, acquired } = openLimiters({ far: { requestsPerMinute: 100, queueWaitMs: 120_000 } });
    const first = permitOf(come('a1'));
    first.answered(429, 600_000, null);
    first.release(null);
    const trial = come('a2');
    for (const id of ['a3', 'b1']) come(id);
    await pass(60_000);
    expect(acquired).toEqual(['a1', 'a2']);
    permitOf(trial).answered(429, 30_000, null);
    permitOf(trial).release(null);
    await pass(29_999);
    expect(acquired).toHaveLength(2);
    // A pause of less than a minute is over when it ends.
    await pass(1);
    expect(acquired).toEqual(['a1', 'a2', 'b1', 'a3']);
  });

  test('that was asked for longer is over when the request that tries is answered, or fails without an answer', async () => {
    for (const end of [
      (permit: Permit) => permit.answered(200, null, null),
      (permit: Permit) => permit.release(null),
    ]) {
      const { come, pass, acquired } = openLimiters({ far: { maxInFlight: 4, queueWaitMs: 120_000 } });
      permitOf(come('a1')).answered(503, 600_000, null);
      const trial = come('a2');
      for (const id of ['a3', 'a4']) come(id);
      await pass(60_000);
      expect(acquired).toEqual(['a1', 'a2']);
      end(permitOf(trial));
      await pass(0);
      expect(acquired).toEqual(['a1', 'a2', 'a3', 'a4']);
    }
  });

  test('that was asked for longer is tried again where the request that tries gets no answer', async () => {
    const { come, pass, acquired } = openLimiters({ far: { maxInFlight: 4, queueWaitMs: 120_000 } });
    permitOf(come('a1')).answered(429, 600_000, null);
    for (const id of ['a2', 'a3', 'a4']) come(id);
    await pass(69_999);
    expect(acquired).toEqual(['a1', 'a2']);
    await pass(1);
    expect(acquired).toEqual(['a1', 'a2', 'a3']);
  });

  test('that was asked for longer is tried by the next one where the one that would have tried is not sent', async () => {
    const { come, pass, acquired } = openLimiters({ far: { maxInFlight: 9, queueWaitMs: 120_000 } });
    permitOf(come('a1')).answered(429, 600_000, null);
    const unsent = come('a2');
    for (const id of ['a3', 'a4', 'a5']) come(id);
    await pass(60_000);
    permitOf(unsent).releaseUnused();
    await pass(0);
    expect(acquired).toEqual(['a1', 'a2', 'a3']);
  });

  test('is no other upstream’s: one that takes the place of the one that asked is not tried first', async () => {
    const { come, pass, limiters, acquired } = openLimiters({
      far: { maxInFlight: 9, queueWaitMs: 120_000 },
    });
    permitOf(come('a1')).answered(429, 600_000, null);
    for (const id of ['a2', 'a3', 'a4']) come(id);
    limiters.forget('far', 1);
    await pass(0);
    expect(acquired).toEqual(['a1', 'a2', 'a3', 'a4']);
  });

  test('that the limiter does not know of is kept, too', async () => {
    let untilMs = 5_000;
    const pausedMs = (): number => Math.max(0, untilMs - scene.clock.monotonicMs());
    const scene = openLimiters({ far: { maxInFlight: 9, queueWaitMs: 10_000 } }, { pausedMs });
    const held = scene.come('a1');
    expect(scene.limiters.waiting('a1')).toMatchObject({ position: 1, expectedMs: 5_000 });
    expect(scene.limiters.views()).toMatchObject([{ expectedMs: 5_000 }]);
    await scene.pass(4_999);
    expect(held.result).toBeNull();
    await scene.pass(1);
    expect(held.result).toMatchObject({ kind: 'acquired', waitedMs: 5_000, expectedMs: 5_000 });
    untilMs = 60_000;
    expect(scene.come('a2').result).toEqual({
      kind: 'full',
      isTooLong: true,
      upstreams: ['far'],
      models: [],
      waiting: 0,
      expectedMs: 55_000,
    });
  });
});

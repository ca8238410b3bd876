import { describe, expect, test } from 'vitest';
import type { LimitQuotas } from '../../../src/domain/ports/quotas.ts';
import type { LimitSettings } from '../../../src/domain/ports/upstream-limiters.ts';
import { at, limitSettings, openLimiters, permitOf, limiterSettings } from '../../support/limiter-scene.ts';
import type { Came, LimiterScene } from '../../support/limiter-scene.ts';

/** A request for a model at the upstream `far`. */
const forModel = (model: string) => ({ targets: [at('far', model)] });

function modelsOf(models: Readonly<Record<string, Partial<LimitSettings>>>): Map<string, LimitSettings> {
  return new Map(Object.entries(models).map(([name, own]) => [name, limitSettings(own)]));
}

describe('a model with limits of its own', () => {
  test('has its requests wait for it, and no others', async () => {
    const { come, pass, limiters } = openLimiters({ far: { models: modelsOf({ big: { maxInFlight: 1 } }) } });
    const first = permitOf(come('a1', forModel('big')));
    const second = come('a2', forModel('big'));
    expect([second.result, come('a3', forModel('small')).result?.kind]).toEqual([null, 'acquired']);
    expect([limiters.limits(at('far', 'big')), limiters.limits(at('far', 'small'))]).toEqual([true, false]);
    expect(limiters.views()).toMatchObject([
      {
        upstream: 'far',
        inFlight: 1,
        maxInFlight: null,
        waiting: 1,
        models: [{ model: 'big', inFlight: 1, maxInFlight: 1, waiting: 1 }],
      },
    ]);
    first.release(null);
    await pass(0);
    expect(permitOf(second)).toMatchObject({ upstream: 'far', model: 'big', isOfModel: true });
  });

  test('is held by those of its upstream, too, which it takes in one step with its own', async () => {
    const models = modelsOf({ big: { maxInFlight: 1 } });
    const { come, pass, limiters, acquired } = openLimiters({ far: { maxInFlight: 2, models } });
    const permits = ['a1', 'a2'].map((id) => permitOf(come(id, forModel('small'))));
    come('b1', forModel('big'));
    come('b2', forModel('big'));
    come('c1', forModel('small'));
    expect(limiters.views()).toMatchObject([
      { inFlight: 2, waiting: 3, models: [{ inFlight: 0, waiting: 2 }] },
    ]);
    // The first permit is that of the first one who waits; then only one of another model may start.
    for (const permit of permits) permit.release(null);
    await pass(0);
    expect(acquired).toEqual(['a1', 'a2', 'b1', 'c1']);
    expect(limiters.views()).toMatchObject([
      { inFlight: 2, waiting: 1, models: [{ inFlight: 1, waiting: 1 }] },
    ]);
  });

  test('counts its starts and tokens for itself and for its upstream', () => {
    const models = modelsOf({ big: { requestsPerMinute: 2, tokensPerMinute: 100 } });
    const { come, limiters } = openLimiters({ far: { requestsPerMinute: 9, tokensPerMinute: 900, models } });
    const tokens = { input: 10, output: 20 };
    permitOf(come('a1', { ...forModel('big'), tokens })).release({ input: 5, output: 5 });
    permitOf(come('a2', { ...forModel('small'), tokens }));
    permitOf(come('a3', { ...forModel('big'), tokens })).releaseUnused();
    expect(limiters.views()).toMatchObject([
      { startsLeft: 7, tokensLeft: 860, models: [{ startsLeft: 1, tokensLeft: 90 }] },
    ]);
  });

  test('is never passed by one of the same model that needs less of what it has left', async () => {
    const models = modelsOf({ big: { tokensPerMinute: 100, queueWaitMs: 90_000 } });
    const { come, pass, acquired } = openLimiters({ far: { models } });
    const sized = (input: number) => ({ ...forModel('big'), tokens: { input, output: 0 } });
    permitOf(come('a1', sized(60))).release(null);
    come('a2', sized(70));
    come('b1', sized(10));
    await pass(1_000);
    come('c1', sized(10));
    expect(acquired).toEqual(['a1']);
    await pass(60_000);
    expect(acquired).toEqual(['a1', 'a2', 'b1', 'c1']);
  });

  test('has a queue of its own length and patience, beside that of its upstream', async () => {
    const models = modelsOf({
      big: { maxInFlight: 1, queue: 1, queueWaitMs: 5_000 },
      huge: { maxInFlight: 1 },
    });
    const { come, pass } = openLimiters({ far: { queue: 3, models } });
    for (const model of ['big', 'huge']) permitOf(come('a1', forModel(model)));
    const waiting = come('a2', forModel('big'));
    const refusal = {
      kind: 'full',
      isTooLong: false,
      upstreams: ['far'],
      models: [at('far', 'big')],
      waiting: 1,
      expectedMs: 0,
    };
    expect(come('a3', forModel('big')).result).toEqual(refusal);
    expect(['a4', 'a5', 'a6', 'a7'].map((id) => come(id, forModel('huge')).result?.kind ?? 'waits')).toEqual([
      'waits',
      'waits',
      'waits',
      'full',
    ]);
    await pass(5_000);
    expect(waiting.result).toMatchObject({ kind: 'timed_out', models: [at('far', 'big')], waitedMs: 5_000 });
  });

  test('is one of two of a request at one upstream: it waits once, and takes the first that is free', async () => {
    const models = modelsOf({ big: { maxInFlight: 1 }, huge: { maxInFlight: 1 } });
    const { come, pass, limiters } = openLimiters({ far: { models } });
    const targets = [at('far', 'big'), at('far', 'huge')];
    const [first, second] = ['a1', 'a2'].map((id) => permitOf(come(id, { targets })));
    expect([first?.model, second?.model]).toEqual(['big', 'huge']);
    const third = come('a3', { targets });
    const fourth = come('a4', forModel('big'));
    expect(limiters.views()).toMatchObject([{ waiting: 2, models: [{ waiting: 2 }, { waiting: 1 }] }]);
    second?.release(null);
    await pass(0);
    expect(permitOf(third).model).toBe('huge');
    first?.release(null);
    await pass(0);
    expect(permitOf(fourth).model).toBe('big');
  });

  test.each([1, 2, 5])(
    'has the keys that wait for it take turns by their weights, while %i requests for another model start between',
    async (others) => {
      const models = modelsOf({ big: { maxInFlight: 1 } });
      const { come, pass, acquired } = openLimiters({ far: { maxInFlight: 9, models } });
      let permit = permitOf(come('a0', forModel('big')));
      const came = new Map<string, Came>();
      for (const [key, weight] of [
        ['a', 1],
        ['b', 1],
        ['c', 3],
      ] as const)
        for (let count = 1; count <= 6; count++)
          came.set(`${key}${count}`, come(`${key}${count}`, { ...forModel('big'), weight }));
      const ofBig = (): readonly string[] => acquired.filter((id) => !id.startsWith('z'));
      for (let served = 0; served < 15; served++) {
        for (let count = 0; count < others; count++) permitOf(come('z', forModel('small'))).release(null);
        permit.release(null);
        await pass(0);
        const last = came.get(ofBig().at(-1) ?? '');
        if (last !== undefined) permit = permitOf(last);
      }
      const first = ofBig().slice(1, 11).join('');
      expect(['a', 'b', 'c'].map((key) => first.split(key).length - 1)).toEqual([2, 2, 6]);
    },
  );

  test('tells what waits only what is ahead of it: not those that it passes', async () => {
    const models = modelsOf({ big: { maxInFlight: 1 } });
    const { come, pass, limiters } = openLimiters({ far: { maxInFlight: 2, models } });
    permitOf(come('a1', forModel('big')));
    const small = permitOf(come('a2', forModel('small')));
    for (const id of ['a3', 'a4', 'a5']) come(id, forModel('big'));
    come('b1', forModel('small'));
    expect(limiters.waiting('b1')).toMatchObject({ position: 1 });
    expect(limiters.waiting('a5')).toMatchObject({ position: 4 });
    await pass(1_000);
    small.answered(200, null, null);
    small.release(null);
    await pass(0);
    expect(limiters.waiting('b1')).toBeNull();
    expect(limiters.waiting('a5')).toMatchObject({ position: 3, expectedMs: 3_000 });
  });
});

describe('limits of models that are learned', () => {
  const report = (left: number, limit = 10) => [
    {
      name: 'requests',
      counts: 'requests',
      limit,
      remaining: left,
      resetMs: 60_000,
      resolutionMs: 1_000,
      refill: 'window',
    } as const,
  ];

  test('hold for that model, and teach nothing of its upstream', async () => {
    const models = modelsOf({ big: { learnLimits: true, queueWaitMs: 90_000 } });
    const { come, pass, limiters } = openLimiters({ far: { learnLimits: true, models } });
    const permit = permitOf(come('a1', forModel('big')));
    permit.answered(200, null, report(0));
    permit.release(null);
    expect(come('a2', forModel('big')).result).toBeNull();
    expect(come('a3', forModel('small')).result?.kind).toBe('acquired');
    expect(limiters.views()).toMatchObject([
      { learned: [], maxInFlight: 4, models: [{ learned: [{ limit: 10, left: 0 }], waiting: 1 }] },
    ]);
    await pass(61_000);
    expect(limiters.views()).toMatchObject([{ models: [{ waiting: 0, inFlight: 1 }] }]);
  });

  test('are nothing of what its upstream has learned: that holds and counts no request for this model', async () => {
    const models = modelsOf({ small: { learnLimits: true } });
    const { come, pass, limiters } = openLimiters({
      far: { learnLimits: true, queueWaitMs: 90_000, models },
    });
    const first = permitOf(come('l1', forModel('large')));
    first.answered(200, null, report(1));
    first.release(null);
    const second = permitOf(come('l2', forModel('large')));
    const waiting = come('l3', forModel('large'));
    expect(waiting.result).toBeNull();
    const small = Array.from({ length: 4 }, (_, number) => permitOf(come(`s${number}`, forModel('small'))));
    const behind = come('s9', forModel('small'));
    expect(behind.result).toBeNull();
    for (const permit of small) {
      permit.answered(200, null, report(900, 1_000));
      permit.release(null);
    }
    await pass(0);
    expect([waiting.result, behind.result?.kind]).toEqual([null, 'acquired']);
    expect(limiters.views()).toMatchObject([
      { learned: [{ limit: 10, left: 0 }], waiting: 1, models: [{ learned: [{ limit: 1_000 }] }] },
    ]);
    second.release(null);
    expect(come('m1', forModel('medium')).result).toBeNull();
  });

  test('follow from refusals without a reason, too: fewer of that model at a time', () => {
    const models = modelsOf({ big: { learnLimits: true } });
    const { come, limiters } = openLimiters({ far: { learnLimits: true, models } });
    const permits = ['a1', 'a2', 'a3', 'a4'].map((id) => permitOf(come(id, forModel('big'))));
    permits[0]?.answered(429, null, null);
    expect(limiters.views()).toMatchObject([
      { learnedInFlight: null, models: [{ learnedInFlight: 2, pausedMs: 1_000 }] },
    ]);
  });
});

describe('a pause of one model', () => {
  test('holds no other one, neither one that comes nor one that waits behind it', async () => {
    const { come, pass, limiters, acquired } = openLimiters({ far: { maxInFlight: 2 } });
    permitOf(come('a1', forModel('big'))).answered(429, 20_000, null);
    const running = permitOf(come('a2', forModel('small')));
    const held = come('a3', forModel('big'));
    const behind = come('a4', forModel('small'));
    expect([limiters.pausedMs(at('far', 'big')), limiters.pausedMs(at('far', 'small'))]).toEqual([20_000, 0]);
    running.release(null);
    await pass(0);
    expect([held.result, behind.result?.kind]).toEqual([null, 'acquired']);
    permitOf(behind).release(null);
    await pass(0);
    permitOf(come('a5', forModel('small'))).release(null);
    await pass(20_000);
    expect(acquired).toEqual(['a1', 'a2', 'a4', 'a5', 'a3']);
  });

  test('is of all models where the upstream says that it is not available', () => {
    const { come, limiters } = openLimiters({ far: { maxInFlight: 4 } });
    permitOf(come('a1', forModel('big'))).answered(529, 5_000, null);
    permitOf(come('a2', forModel('small'))).answered(503, 4_000, null);
    expect(['a3', 'a4'].map((id) => come(id, forModel(id)).result)).toEqual([null, null]);
    expect(limiters.views()).toMatchObject([
      { pausedMs: 4_000, pauses: [{ model: 'big', pausedMs: 5_000 }] },
    ]);
  });

  test('fills no queue of others: those for other models wait in it, up to its length', async () => {
    const { come, pass, acquired } = openLimiters({ far: { maxInFlight: 1, queue: 3 } });
    permitOf(come('a1', forModel('big'))).answered(429, 20_000, null);
    const kinds = (key: string, model: string): readonly string[] =>
      [1, 2, 3, 4].map((count) => come(`${key}${count}x`, forModel(model)).result?.kind ?? 'waits');
    expect(kinds('a', 'big')).toEqual(['waits', 'waits', 'waits', 'full']);
    expect(kinds('b', 'small')).toEqual(['waits', 'waits', 'waits', 'full']);
    expect(come('c1', forModel('small')).result).toMatchObject({ isTooLong: false, waiting: 3 });
    expect(come('c2', forModel('big')).result).toMatchObject({ isTooLong: false, waiting: 6 });
    await pass(0);
    expect(acquired).toEqual(['a1']);
  });

  test('fills the queue of an upstream at most with a thousand requests', () => {
    const { come, limiters } = openLimiters({ far: { maxInFlight: 1, queue: 1_000 } });
    permitOf(come('a', forModel('m0'))).answered(429, 20_000, null);
    for (let count = 0; count < 1_000; count++) come(`b${count}`, forModel('m0'));
    expect(come('c', forModel('small')).result).toMatchObject({ kind: 'full', isTooLong: false, waiting: 0 });
    expect(limiters.views()).toMatchObject([{ waiting: 1_000 }]);
  });

  test('is kept where a thousand models have paused and another one does: the pause that ends first is forgotten', () => {
    const { come, limiters } = openLimiters({ far: { maxInFlight: 2_000 } });
    const pause = (model: string, pauseMs: number): void =>
      permitOf(come('a', forModel(model))).answered(429, pauseMs, null);
    pause('first', 60_000);
    for (let count = 0; count < 999; count++) pause(`m${count}`, count === 500 ? 1_000 : 30_000);
    pause('last', 30_000);
    const left = ['first', 'm0', 'm500', 'last'].map((model) => limiters.pausedMs(at('far', model)));
    expect(left).toEqual([60_000, 30_000, 0, 30_000]);
  });

  test('that the limiter does not know of holds that model alone', async () => {
    const pausedMs = ({ model }: { model: string | null }): number => (model === 'big' ? 5_000 : 0);
    const { come } = openLimiters({ far: { maxInFlight: 4 } }, { pausedMs });
    expect(come('a1', forModel('big')).result).toBeNull();
    expect(come('a2', forModel('small')).result?.kind).toBe('acquired');
  });

  test('gives its key no claim on what others used meanwhile, and lets it in next', async () => {
    const { come, pass, acquired } = openLimiters({ far: { maxInFlight: 1, queueWaitMs: 90_000 } });
    let permit = permitOf(come('z1', forModel('big')));
    permit.answered(429, 20_000, null);
    const came = new Map(['a1', 'a2', 'a3', 'a4'].map((id) => [id, come(id, forModel('big'))]));
    for (let count = 0; count < 12; count++) came.set(`b${count}`, come(`b${count}`, forModel('small')));
    const next = async (): Promise<void> => {
      permit.release(null);
      await pass(0);
      const last = came.get(acquired.at(-1) ?? '');
      if (last !== undefined) permit = permitOf(last);
    };
    for (let count = 0; count < 6; count++) await next();
    await pass(20_000);
    for (let count = 0; count < 6; count++) await next();
    expect(acquired.slice(1).join(' ')).toBe('b0 b1 b2 b3 b4 b5 a1 a2 b6 a3 b7 a4');
  });
});

describe('settings of models that change', () => {
  const limited = (models: Readonly<Record<string, Partial<LimitSettings>>>) =>
    new Map([['far', limiterSettings({ models: modelsOf(models) })]]);

  test('let in what waits for a limit that is gone, also behind a pause', async () => {
    const models = { big: { maxInFlight: 1 }, huge: { maxInFlight: 1 } };
    const { come, pass, limiters, clock } = openLimiters({ far: { models: modelsOf(models) } });
    const first = permitOf(come('a1', forModel('big')));
    first.answered(429, 20_000, null);
    permitOf(come('b1', forModel('huge')));
    const [waiting, other] = [come('a2', forModel('big')), come('b2', forModel('huge'))];
    limiters.configure(limited({ huge: { maxInFlight: 1 } }));
    await pass(0);
    expect([waiting.result?.kind, other.result]).toEqual(['acquired', null]);
    // A permit under limits that are gone is released all the same.
    first.release(null);
    first.release(null);
    limiters.configure(limited({ huge: { maxInFlight: 2 } }));
    await pass(0);
    expect(other.result?.kind).toBe('acquired');
    expect(limiters.views()).toMatchObject([{ inFlight: 3, waiting: 0, models: [{ inFlight: 2 }] }]);
    expect(clock.scheduled).toBe(0);
  });

  test('let in what waits for a limit that is gone behind a pause of all models, too', async () => {
    const models = { big: { maxInFlight: 1 }, huge: { maxInFlight: 1 } };
    const { come, pass, limiters } = openLimiters({ far: { models: modelsOf(models) } });
    permitOf(come('a1', forModel('big'))).answered(503, 20_000, null);
    const waiting = come('a2', forModel('big'));
    limiters.configure(limited({ huge: { maxInFlight: 1 } }));
    await pass(0);
    expect(waiting.result?.kind).toBe('acquired');
    expect([limiters.pausedMs(at('far', 'huge')), limiters.pausedMs(at('far', 'big'))]).toEqual([20_000, 0]);
  });

  test('hold those that wait from the moment at which a model gets limits', async () => {
    const { come, pass, limiters } = openLimiters({ far: { maxInFlight: 1 } });
    const first = permitOf(come('a1', forModel('big')));
    const came = ['a2', 'a3'].map((id) => come(id, forModel('big')));
    limiters.configure(
      new Map([['far', limiterSettings({ maxInFlight: 9, models: modelsOf({ big: { maxInFlight: 1 } }) })]]),
    );
    await pass(0);
    // What was sent before is not known to limits that are new.
    expect(came.map(({ result }) => result?.kind)).toEqual(['acquired', undefined]);
    first.release(null);
    await pass(0);
    expect(came[1]?.result).toBeNull();
  });
});

test('requests that join no queue ask for quotas of each of their models, also while others wait', () => {
  const quotas: LimitQuotas = { of: (name) => (name === 'far' ? 9 : 0), refresh() {} };
  const limits = { maxInFlight: 4 };
  const models = modelsOf({ big: limits, small: limits, tiny: limits });
  const { come, limiters } = openLimiters({ far: { maxInFlight: 9, models } }, { quotas });
  come('a1', forModel('big'));
  for (const model of ['small', 'tiny', 'tiny', 'big'])
    expect(
      limiters.tryAcquire({ keyId: 's', weight: 1, tokens: { input: 1, output: 1 }, ...forModel(model) }),
    ).toBeNull();
  expect(limiters.uses().map(({ waiting }) => waiting)).toEqual([3, 1, 1, 1]);
  expect(limiters.uses().map(({ waiting }) => waiting)).toEqual([1, 1, 0, 0]);
});

test('a process asks for no quota of its upstream for requests that their model holds', () => {
  const ofAll = (limiters: LimiterScene['limiters']) =>
    limiters.uses().filter(({ upstream }) => upstream === 'far');
  const scene = openLimiters({ far: { maxInFlight: 10, models: modelsOf({ big: { maxInFlight: 1 } }) } });
  for (let count = 0; count < 6; count++) scene.come(`a${count}`, forModel('big'));
  expect(ofAll(scene.limiters)).toMatchObject([{ used: 1, waiting: 0 }]);
  // What a quota of its limit alone holds may start as soon as the quota has grown.
  const quotas: LimitQuotas = { of: (name) => (name === 'far' ? 9 : 0), refresh() {} };
  const models = modelsOf({ big: { maxInFlight: 4 } });
  const other = openLimiters({ far: { maxInFlight: 10, models } }, { quotas });
  for (let count = 0; count < 6; count++) other.come(`a${count}`, forModel('big'));
  expect(ofAll(other.limiters)).toMatchObject([{ used: 0, waiting: 6 }]);
});

test('quotas of a model are renewed by a name that no upstream has', () => {
  const asked: string[] = [];
  const quotas: LimitQuotas = {
    of(name, limit) {
      asked.push(name);
      return limit === 'maxInFlight' && name !== 'far' ? 1 : 9;
    },
    refresh() {},
  };
  const models = modelsOf({ big: { maxInFlight: 4 } });
  const { come, limiters } = openLimiters({ far: { maxInFlight: 9, models } }, { quotas });
  permitOf(come('a1', forModel('big')));
  expect([come('a2', forModel('big')).result, come('a3', forModel('small')).result?.kind]).toEqual([
    null,
    'acquired',
  ]);
  expect(new Set(asked)).toEqual(new Set(['far', '["far","big"]']));
  expect(limiters.uses()).toEqual([
    { upstream: 'far', limit: 'maxInFlight', most: 9, used: 2, waiting: 1 },
    { upstream: '["far","big"]', limit: 'maxInFlight', most: 4, used: 1, waiting: 1 },
  ]);
  expect(
    limiters.tryAcquire({ keyId: 'a', weight: 1, tokens: { input: 1, output: 1 }, ...forModel('big') }),
  ).toBeNull();
});

import { describe, expect, test } from 'vitest';
import type { RoomShares } from '../../../src/domain/ports/room-shares.ts';
import type { LimitSettings } from '../../../src/domain/ports/rooms.ts';
import { at, limitSettings, openRooms, placeOf, roomSettings } from '../../support/room-scene.ts';
import type { Came, RoomScene } from '../../support/room-scene.ts';

/** A request for a model at the upstream `far`. */
const forModel = (model: string) => ({ targets: [at('far', model)] });

function modelsOf(models: Readonly<Record<string, Partial<LimitSettings>>>): Map<string, LimitSettings> {
  return new Map(Object.entries(models).map(([name, own]) => [name, limitSettings(own)]));
}

describe('a model with limits of its own', () => {
  test('has its requests wait for it, and no others', async () => {
    const { come, pass, rooms } = openRooms({ far: { models: modelsOf({ big: { maxInFlight: 1 } }) } });
    const first = placeOf(come('a1', forModel('big')));
    const second = come('a2', forModel('big'));
    expect([second.entry, come('a3', forModel('small')).entry?.kind]).toEqual([null, 'entered']);
    expect([rooms.limits(at('far', 'big')), rooms.limits(at('far', 'small'))]).toEqual([true, false]);
    expect(rooms.views()).toMatchObject([
      {
        upstream: 'far',
        inFlight: 1,
        maxInFlight: null,
        waiting: 1,
        models: [{ model: 'big', inFlight: 1, maxInFlight: 1, waiting: 1 }],
      },
    ]);
    first.leave(null);
    await pass(0);
    expect(placeOf(second)).toMatchObject({ upstream: 'far', model: 'big', isOfModel: true });
  });

  test('is held by those of its upstream, too, which it takes in one step with its own', async () => {
    const models = modelsOf({ big: { maxInFlight: 1 } });
    const { come, pass, rooms, entered } = openRooms({ far: { maxInFlight: 2, models } });
    const places = ['a1', 'a2'].map((id) => placeOf(come(id, forModel('small'))));
    come('b1', forModel('big'));
    come('b2', forModel('big'));
    come('c1', forModel('small'));
    expect(rooms.views()).toMatchObject([{ inFlight: 2, waiting: 3, models: [{ inFlight: 0, waiting: 2 }] }]);
    // The first place is that of the first one who waits; then only one of another model may start.
    for (const place of places) place.leave(null);
    await pass(0);
    expect(entered).toEqual(['a1', 'a2', 'b1', 'c1']);
    expect(rooms.views()).toMatchObject([{ inFlight: 2, waiting: 1, models: [{ inFlight: 1, waiting: 1 }] }]);
  });

  test('counts its starts and tokens for itself and for its upstream', () => {
    const models = modelsOf({ big: { requestsPerMinute: 2, tokensPerMinute: 100 } });
    const { come, rooms } = openRooms({ far: { requestsPerMinute: 9, tokensPerMinute: 900, models } });
    const tokens = { input: 10, output: 20 };
    placeOf(come('a1', { ...forModel('big'), tokens })).leave({ input: 5, output: 5 });
    placeOf(come('a2', { ...forModel('small'), tokens }));
    placeOf(come('a3', { ...forModel('big'), tokens })).withdraw();
    expect(rooms.views()).toMatchObject([
      { startsLeft: 7, tokensLeft: 860, models: [{ startsLeft: 1, tokensLeft: 90 }] },
    ]);
  });

  test('is never passed by one of the same model that needs less of what it has left', async () => {
    const models = modelsOf({ big: { tokensPerMinute: 100, queueWaitMs: 90_000 } });
    const { come, pass, entered } = openRooms({ far: { models } });
    const sized = (input: number) => ({ ...forModel('big'), tokens: { input, output: 0 } });
    placeOf(come('a1', sized(60))).leave(null);
    come('a2', sized(70));
    come('b1', sized(10));
    await pass(1_000);
    come('c1', sized(10));
    expect(entered).toEqual(['a1']);
    await pass(60_000);
    expect(entered).toEqual(['a1', 'a2', 'b1', 'c1']);
  });

  test('has a line of its own length and patience, beside that of its upstream', async () => {
    const models = modelsOf({
      big: { maxInFlight: 1, queue: 1, queueWaitMs: 5_000 },
      huge: { maxInFlight: 1 },
    });
    const { come, pass } = openRooms({ far: { queue: 3, models } });
    for (const model of ['big', 'huge']) placeOf(come('a1', forModel(model)));
    const waiting = come('a2', forModel('big'));
    const refusal = {
      kind: 'full',
      isTooLong: false,
      upstreams: ['far'],
      models: [at('far', 'big')],
      waiting: 1,
      expectedMs: 0,
    };
    expect(come('a3', forModel('big')).entry).toEqual(refusal);
    expect(['a4', 'a5', 'a6', 'a7'].map((id) => come(id, forModel('huge')).entry?.kind ?? 'waits')).toEqual([
      'waits',
      'waits',
      'waits',
      'full',
    ]);
    await pass(5_000);
    expect(waiting.entry).toMatchObject({ kind: 'timed_out', models: [at('far', 'big')], waitedMs: 5_000 });
  });

  test('is one of two of a request at one upstream: it waits once, and takes the first that is free', async () => {
    const models = modelsOf({ big: { maxInFlight: 1 }, huge: { maxInFlight: 1 } });
    const { come, pass, rooms } = openRooms({ far: { models } });
    const targets = [at('far', 'big'), at('far', 'huge')];
    const [first, second] = ['a1', 'a2'].map((id) => placeOf(come(id, { targets })));
    expect([first?.model, second?.model]).toEqual(['big', 'huge']);
    const third = come('a3', { targets });
    const fourth = come('a4', forModel('big'));
    expect(rooms.views()).toMatchObject([{ waiting: 2, models: [{ waiting: 2 }, { waiting: 1 }] }]);
    second?.leave(null);
    await pass(0);
    expect(placeOf(third).model).toBe('huge');
    first?.leave(null);
    await pass(0);
    expect(placeOf(fourth).model).toBe('big');
  });

  test.each([1, 2, 5])(
    'has the keys that wait for it take turns by their weights, while %i requests for another model start between',
    async (others) => {
      const models = modelsOf({ big: { maxInFlight: 1 } });
      const { come, pass, entered } = openRooms({ far: { maxInFlight: 9, models } });
      let place = placeOf(come('a0', forModel('big')));
      const came = new Map<string, Came>();
      for (const [key, weight] of [
        ['a', 1],
        ['b', 1],
        ['c', 3],
      ] as const)
        for (let count = 1; count <= 6; count++)
          came.set(`${key}${count}`, come(`${key}${count}`, { ...forModel('big'), weight }));
      const ofBig = (): readonly string[] => entered.filter((id) => !id.startsWith('z'));
      for (let served = 0; served < 15; served++) {
        for (let count = 0; count < others; count++) placeOf(come('z', forModel('small'))).leave(null);
        place.leave(null);
        await pass(0);
        const last = came.get(ofBig().at(-1) ?? '');
        if (last !== undefined) place = placeOf(last);
      }
      const first = ofBig().slice(1, 11).join('');
      expect(['a', 'b', 'c'].map((key) => first.split(key).length - 1)).toEqual([2, 2, 6]);
    },
  );

  test('tells what waits only what is ahead of it: not those that it passes', async () => {
    const models = modelsOf({ big: { maxInFlight: 1 } });
    const { come, pass, rooms } = openRooms({ far: { maxInFlight: 2, models } });
    placeOf(come('a1', forModel('big')));
    const small = placeOf(come('a2', forModel('small')));
    for (const id of ['a3', 'a4', 'a5']) come(id, forModel('big'));
    come('b1', forModel('small'));
    expect(rooms.waiting('b1')).toMatchObject({ position: 1 });
    expect(rooms.waiting('a5')).toMatchObject({ position: 4 });
    await pass(1_000);
    small.answered(200, null, null);
    small.leave(null);
    await pass(0);
    expect(rooms.waiting('b1')).toBeNull();
    expect(rooms.waiting('a5')).toMatchObject({ position: 3, expectedMs: 3_000 });
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
    const { come, pass, rooms } = openRooms({ far: { learnLimits: true, models } });
    const place = placeOf(come('a1', forModel('big')));
    place.answered(200, null, report(0));
    place.leave(null);
    expect(come('a2', forModel('big')).entry).toBeNull();
    expect(come('a3', forModel('small')).entry?.kind).toBe('entered');
    expect(rooms.views()).toMatchObject([
      { learned: [], maxInFlight: 4, models: [{ learned: [{ limit: 10, left: 0 }], waiting: 1 }] },
    ]);
    await pass(61_000);
    expect(rooms.views()).toMatchObject([{ models: [{ waiting: 0, inFlight: 1 }] }]);
  });

  test('are nothing of what its upstream has learned: that holds and counts no request for this model', async () => {
    const models = modelsOf({ small: { learnLimits: true } });
    const { come, pass, rooms } = openRooms({ far: { learnLimits: true, queueWaitMs: 90_000, models } });
    const first = placeOf(come('l1', forModel('large')));
    first.answered(200, null, report(1));
    first.leave(null);
    const second = placeOf(come('l2', forModel('large')));
    const waiting = come('l3', forModel('large'));
    expect(waiting.entry).toBeNull();
    const small = Array.from({ length: 4 }, (_, number) => placeOf(come(`s${number}`, forModel('small'))));
    const behind = come('s9', forModel('small'));
    expect(behind.entry).toBeNull();
    for (const place of small) {
      place.answered(200, null, report(900, 1_000));
      place.leave(null);
    }
    await pass(0);
    expect([waiting.entry, behind.entry?.kind]).toEqual([null, 'entered']);
    expect(rooms.views()).toMatchObject([
      { learned: [{ limit: 10, left: 0 }], waiting: 1, models: [{ learned: [{ limit: 1_000 }] }] },
    ]);
    second.leave(null);
    expect(come('m1', forModel('medium')).entry).toBeNull();
  });

  test('follow from refusals without a reason, too: fewer of that model at a time', () => {
    const models = modelsOf({ big: { learnLimits: true } });
    const { come, rooms } = openRooms({ far: { learnLimits: true, models } });
    const places = ['a1', 'a2', 'a3', 'a4'].map((id) => placeOf(come(id, forModel('big'))));
    places[0]?.answered(429, null, null);
    expect(rooms.views()).toMatchObject([
      { learnedInFlight: null, models: [{ learnedInFlight: 2, pausedMs: 1_000 }] },
    ]);
  });
});

describe('a pause of one model', () => {
  test('holds no other one, neither one that comes nor one that waits behind it', async () => {
    const { come, pass, rooms, entered } = openRooms({ far: { maxInFlight: 2 } });
    placeOf(come('a1', forModel('big'))).answered(429, 20_000, null);
    const running = placeOf(come('a2', forModel('small')));
    const held = come('a3', forModel('big'));
    const behind = come('a4', forModel('small'));
    expect([rooms.pausedMs(at('far', 'big')), rooms.pausedMs(at('far', 'small'))]).toEqual([20_000, 0]);
    running.leave(null);
    await pass(0);
    expect([held.entry, behind.entry?.kind]).toEqual([null, 'entered']);
    placeOf(behind).leave(null);
    await pass(0);
    placeOf(come('a5', forModel('small'))).leave(null);
    await pass(20_000);
    expect(entered).toEqual(['a1', 'a2', 'a4', 'a5', 'a3']);
  });

  test('is of all models where the upstream says that it is not available', () => {
    const { come, rooms } = openRooms({ far: { maxInFlight: 4 } });
    placeOf(come('a1', forModel('big'))).answered(529, 5_000, null);
    placeOf(come('a2', forModel('small'))).answered(503, 4_000, null);
    expect(['a3', 'a4'].map((id) => come(id, forModel(id)).entry)).toEqual([null, null]);
    expect(rooms.views()).toMatchObject([{ pausedMs: 4_000, pauses: [{ model: 'big', pausedMs: 5_000 }] }]);
  });

  test('fills no line of others: those for other models wait in it, up to its length', async () => {
    const { come, pass, entered } = openRooms({ far: { maxInFlight: 1, queue: 3 } });
    placeOf(come('a1', forModel('big'))).answered(429, 20_000, null);
    const kinds = (key: string, model: string): readonly string[] =>
      [1, 2, 3, 4].map((count) => come(`${key}${count}x`, forModel(model)).entry?.kind ?? 'waits');
    expect(kinds('a', 'big')).toEqual(['waits', 'waits', 'waits', 'full']);
    expect(kinds('b', 'small')).toEqual(['waits', 'waits', 'waits', 'full']);
    expect(come('c1', forModel('small')).entry).toMatchObject({ isTooLong: false, waiting: 3 });
    expect(come('c2', forModel('big')).entry).toMatchObject({ isTooLong: false, waiting: 6 });
    await pass(0);
    expect(entered).toEqual(['a1']);
  });

  test('fills the room of an upstream at most with a thousand requests', () => {
    const { come, rooms } = openRooms({ far: { maxInFlight: 1, queue: 1_000 } });
    placeOf(come('a', forModel('m0'))).answered(429, 20_000, null);
    for (let count = 0; count < 1_000; count++) come(`b${count}`, forModel('m0'));
    expect(come('c', forModel('small')).entry).toMatchObject({ kind: 'full', isTooLong: false, waiting: 0 });
    expect(rooms.views()).toMatchObject([{ waiting: 1_000 }]);
  });

  test('is kept where a thousand models have paused and another one does: the pause that ends first is forgotten', () => {
    const { come, rooms } = openRooms({ far: { maxInFlight: 2_000 } });
    const pause = (model: string, pauseMs: number): void =>
      placeOf(come('a', forModel(model))).answered(429, pauseMs, null);
    pause('first', 60_000);
    for (let count = 0; count < 999; count++) pause(`m${count}`, count === 500 ? 1_000 : 30_000);
    pause('last', 30_000);
    const left = ['first', 'm0', 'm500', 'last'].map((model) => rooms.pausedMs(at('far', model)));
    expect(left).toEqual([60_000, 30_000, 0, 30_000]);
  });

  test('that the room does not know of holds that model alone', async () => {
    const pausedMs = ({ model }: { model: string | null }): number => (model === 'big' ? 5_000 : 0);
    const { come } = openRooms({ far: { maxInFlight: 4 } }, { pausedMs });
    expect(come('a1', forModel('big')).entry).toBeNull();
    expect(come('a2', forModel('small')).entry?.kind).toBe('entered');
  });

  test('gives its key no claim on what others used meanwhile, and lets it in next', async () => {
    const { come, pass, entered } = openRooms({ far: { maxInFlight: 1, queueWaitMs: 90_000 } });
    let place = placeOf(come('z1', forModel('big')));
    place.answered(429, 20_000, null);
    const came = new Map(['a1', 'a2', 'a3', 'a4'].map((id) => [id, come(id, forModel('big'))]));
    for (let count = 0; count < 12; count++) came.set(`b${count}`, come(`b${count}`, forModel('small')));
    const next = async (): Promise<void> => {
      place.leave(null);
      await pass(0);
      const last = came.get(entered.at(-1) ?? '');
      if (last !== undefined) place = placeOf(last);
    };
    for (let count = 0; count < 6; count++) await next();
    await pass(20_000);
    for (let count = 0; count < 6; count++) await next();
    expect(entered.slice(1).join(' ')).toBe('b0 b1 b2 b3 b4 b5 a1 a2 b6 a3 b7 a4');
  });
});

describe('settings of models that change', () => {
  const limited = (models: Readonly<Record<string, Partial<LimitSettings>>>) =>
    new Map([['far', roomSettings({ models: modelsOf(models) })]]);

  test('let in who waits for a limit that is gone, also behind a pause', async () => {
    const models = { big: { maxInFlight: 1 }, huge: { maxInFlight: 1 } };
    const { come, pass, rooms, clock } = openRooms({ far: { models: modelsOf(models) } });
    const first = placeOf(come('a1', forModel('big')));
    first.answered(429, 20_000, null);
    placeOf(come('b1', forModel('huge')));
    const [waiting, other] = [come('a2', forModel('big')), come('b2', forModel('huge'))];
    rooms.configure(limited({ huge: { maxInFlight: 1 } }));
    await pass(0);
    expect([waiting.entry?.kind, other.entry]).toEqual(['entered', null]);
    // A place under limits that are gone is given back all the same.
    first.leave(null);
    first.leave(null);
    rooms.configure(limited({ huge: { maxInFlight: 2 } }));
    await pass(0);
    expect(other.entry?.kind).toBe('entered');
    expect(rooms.views()).toMatchObject([{ inFlight: 3, waiting: 0, models: [{ inFlight: 2 }] }]);
    expect(clock.scheduled).toBe(0);
  });

  test('let in who waits for a limit that is gone behind a pause of all models, too', async () => {
    const models = { big: { maxInFlight: 1 }, huge: { maxInFlight: 1 } };
    const { come, pass, rooms } = openRooms({ far: { models: modelsOf(models) } });
    placeOf(come('a1', forModel('big'))).answered(503, 20_000, null);
    const waiting = come('a2', forModel('big'));
    rooms.configure(limited({ huge: { maxInFlight: 1 } }));
    await pass(0);
    expect(waiting.entry?.kind).toBe('entered');
    expect([rooms.pausedMs(at('far', 'huge')), rooms.pausedMs(at('far', 'big'))]).toEqual([20_000, 0]);
  });

  test('hold those that wait from the moment at which a model gets limits', async () => {
    const { come, pass, rooms } = openRooms({ far: { maxInFlight: 1 } });
    const first = placeOf(come('a1', forModel('big')));
    const came = ['a2', 'a3'].map((id) => come(id, forModel('big')));
    rooms.configure(
      new Map([['far', roomSettings({ maxInFlight: 9, models: modelsOf({ big: { maxInFlight: 1 } }) })]]),
    );
    await pass(0);
    // What was sent before is not known to limits that are new.
    expect(came.map(({ entry }) => entry?.kind)).toEqual(['entered', undefined]);
    first.leave(null);
    await pass(0);
    expect(came[1]?.entry).toBeNull();
  });
});

test('requests that join no queue ask for shares of each of their models, also while others wait', () => {
  const shares: RoomShares = { of: (name) => (name === 'far' ? 9 : 0), look() {} };
  const limits = { maxInFlight: 4 };
  const models = modelsOf({ big: limits, small: limits, tiny: limits });
  const { come, rooms } = openRooms({ far: { maxInFlight: 9, models } }, { shares });
  come('a1', forModel('big'));
  for (const model of ['small', 'tiny', 'tiny', 'big'])
    expect(
      rooms.enterAtOnce({ keyId: 's', weight: 1, tokens: { input: 1, output: 1 }, ...forModel(model) }),
    ).toBeNull();
  expect(rooms.uses().map(({ waiting }) => waiting)).toEqual([3, 1, 1, 1]);
  expect(rooms.uses().map(({ waiting }) => waiting)).toEqual([1, 1, 0, 0]);
});

test('a process asks for no share of its upstream for requests that their model holds', () => {
  const ofAll = (rooms: RoomScene['rooms']) => rooms.uses().filter(({ upstream }) => upstream === 'far');
  const scene = openRooms({ far: { maxInFlight: 10, models: modelsOf({ big: { maxInFlight: 1 } }) } });
  for (let count = 0; count < 6; count++) scene.come(`a${count}`, forModel('big'));
  expect(ofAll(scene.rooms)).toMatchObject([{ used: 1, waiting: 0 }]);
  // What a share of its limit alone holds may start as soon as the share has grown.
  const shares: RoomShares = { of: (name) => (name === 'far' ? 9 : 0), look() {} };
  const models = modelsOf({ big: { maxInFlight: 4 } });
  const other = openRooms({ far: { maxInFlight: 10, models } }, { shares });
  for (let count = 0; count < 6; count++) other.come(`a${count}`, forModel('big'));
  expect(ofAll(other.rooms)).toMatchObject([{ used: 0, waiting: 6 }]);
});

test('shares of a model are settled by a name that no upstream has', () => {
  const asked: string[] = [];
  const shares: RoomShares = {
    of(name, limit) {
      asked.push(name);
      return limit === 'maxInFlight' && name !== 'far' ? 1 : 9;
    },
    look() {},
  };
  const models = modelsOf({ big: { maxInFlight: 4 } });
  const { come, rooms } = openRooms({ far: { maxInFlight: 9, models } }, { shares });
  placeOf(come('a1', forModel('big')));
  expect([come('a2', forModel('big')).entry, come('a3', forModel('small')).entry?.kind]).toEqual([
    null,
    'entered',
  ]);
  expect(new Set(asked)).toEqual(new Set(['far', '["far","big"]']));
  expect(rooms.uses()).toEqual([
    { upstream: 'far', limit: 'maxInFlight', most: 9, used: 2, waiting: 1 },
    { upstream: '["far","big"]', limit: 'maxInFlight', most: 4, used: 1, waiting: 1 },
  ]);
  expect(
    rooms.enterAtOnce({ keyId: 'a', weight: 1, tokens: { input: 1, output: 1 }, ...forModel('big') }),
  ).toBeNull();
});

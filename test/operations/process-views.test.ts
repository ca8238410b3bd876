import { expect, test } from 'vitest';
import type { CircuitView } from '../../src/domain/upstreams/circuit.ts';
import type { LimitsView, LimiterView } from '../../src/domain/ports/upstream-limiters.ts';
import type { ModelPrice } from '../../src/domain/money/pricing.ts';
import type { RouteMeasureView } from '../../src/domain/routing/route-measure.ts';
import type { ShadowView } from '../../src/domain/shadows/shadow-book.ts';
import type { KnownUpstream, ServedModel } from '../../src/operations/known-upstreams.ts';
import { joinShadows, joinUpstreams } from '../../src/operations/process-views.ts';

const closed: CircuitView = {
  state: 'closed',
  onlyKey: null,
  openSinceMs: null,
  trialAtMs: null,
  isOnTrial: false,
  consecutiveFailures: 0,
  windowAttempts: 3,
  windowFailures: 0,
  pausedUntilMs: null,
};

const measure: RouteMeasureView = {
  inFlight: 1,
  waiting: 0,
  firstTexts: 1,
  firstTextMs: 100,
  firstTextP95Ms: 200,
  isFailing: false,
};

const line = { input: 1, cachedInput: 1, cacheWrite: 1, output: 2, request: 0 };
const price: ModelPrice = { ...line, above: null };

function route(measured: RouteMeasureView | null, more: Partial<ServedModel> = {}): ServedModel {
  const names = { model: 'small', upstreamModel: 'tiny', place: 1, weight: null, policy: 'fastest' } as const;
  return { ...names, measured, health: null, price, ...more };
}

const limits: LimitsView = {
  inFlight: 2,
  maxInFlight: 3,
  startsLeft: 10,
  tokensLeft: null,
  learned: [{ name: 'requests', limit: 60, left: 20 }],
  learnedInFlight: null,
  pausedMs: 0,
  waiting: 1,
  expectedMs: 500,
};
const limiter: LimiterView = { upstream: 'local', ...limits, models: [], pauses: [] };

function upstream(more: Partial<KnownUpstream> = {}): KnownUpstream {
  return {
    name: 'local',
    dialect: 'chat',
    origin: 'http://127.0.0.1:1',
    isProbed: true,
    passthrough: [],
    isDiscovered: false,
    report: { state: 'ok' },
    availability: 'available',
    pausedUntilMs: null,
    circuit: closed,
    probes: closed,
    okAtMs: 1_000,
    failedAtMs: null,
    served: { models: [route(measure)], hasMore: false },
    counts: { attempts: { completed: 3 }, violations: {} },
    limiter,
    ...more,
  };
}

const sums = { characters: 10, firstTextMs: 20, totalMs: 30, costNanos: 40 };

function shadow(
  more: Partial<ShadowView['terms']> = {},
  counts: Partial<ShadowView['counts']> = {},
): ShadowView {
  return {
    terms: {
      model: 'small',
      route: { upstream: 'other', model: 'big' },
      share: 0.5,
      price,
      budgetNanos: 5_000,
      maxInFlight: 4,
      ...more,
    },
    running: 1,
    budget: { spentNanos: 100, heldNanos: 10, endMs: 86_400_000 },
    counts: {
      sinceMs: 2_000,
      outcomes: { completed: 2 },
      skipped: {},
      verdicts: { agree: 2 } as ShadowView['counts']['verdicts'],
      pairs: 2,
      timedPairs: 1,
      answers: { ...sums },
      shadows: { ...sums },
      lastFailure: null,
      ...counts,
    },
  };
}

test('what one worker knows is shown as it is', () => {
  expect(joinUpstreams([upstream()], [[upstream()]])).toEqual([upstream()]);
  expect(joinShadows([shadow()], [[shadow()]])).toEqual([shadow()]);
  // No worker could be asked, or none has this config.
  expect(joinUpstreams([upstream()], [])).toEqual([upstream()]);
  expect(joinShadows([shadow()], [[shadow({ route: { upstream: 'other', model: 'former' } })]])).toEqual([
    shadow(),
  ]);
});

test('an upstream is in the state that its worst worker knows, and what all have counted is added up', () => {
  const open: CircuitView = {
    ...closed,
    state: 'open',
    openSinceMs: 5,
    trialAtMs: 9,
    consecutiveFailures: 7,
  };
  const failing = upstream({
    report: { state: 'failing', cause: 'connection refused' },
    availability: 'failing',
    circuit: open,
    probes: { ...closed, consecutiveFailures: 2 },
    okAtMs: null,
    failedAtMs: 3_000,
    counts: { attempts: { completed: 1, connection_failed: 4 }, violations: { bad_json: 1 } },
  });
  const paused = upstream({
    report: { state: 'paused by the provider' },
    availability: 'cooling',
    circuit: { ...closed, consecutiveFailures: 1, pausedUntilMs: 8_000 },
    okAtMs: 4_000,
  });
  for (const own of [failing, paused])
    expect(joinUpstreams([own], [[upstream()], [failing], [paused]])).toMatchObject([
      {
        report: failing.report,
        availability: 'cooling',
        circuit: { ...open, pausedUntilMs: 8_000 },
        probes: { state: 'closed', consecutiveFailures: 2 },
        okAtMs: 4_000,
        failedAtMs: 3_000,
        counts: { attempts: { completed: 7, connection_failed: 4 }, violations: { bad_json: 1 } },
      },
    ]);
});

test('times of a route weigh as much as they were measured, and other routes have their own', () => {
  const second = route({ ...measure, inFlight: 9 }, { place: 2 });
  const often = {
    ...measure,
    waiting: 1,
    firstTexts: 3,
    firstTextMs: 300,
    firstTextP95Ms: 400,
    isFailing: true,
  };
  const unknown = { ...measure, firstTexts: 0, firstTextMs: null, firstTextP95Ms: null };
  const known = [[measure, second], [often], [unknown]].map(([first, ...rest]) =>
    upstream({
      served: { models: [route(first as RouteMeasureView), ...(rest as ServedModel[])], hasMore: false },
    }),
  );
  const [own] = known;
  if (own === undefined) throw new Error('no upstream');
  const [joined] = joinUpstreams(
    [own],
    known.map((each) => [each]),
  );
  expect(joined?.served?.models.map(({ measured }) => measured)).toEqual([
    { inFlight: 3, waiting: 1, firstTexts: 4, firstTextMs: 250, firstTextP95Ms: 350, isFailing: true },
    second.measured,
  ]);
  // So long ago that they count nothing any more.
  const old = upstream({ served: { models: [route({ ...measure, firstTexts: 0 })], hasMore: false } });
  expect(joinUpstreams([old], [[old], [old]])[0]?.served?.models[0]?.measured?.firstTextMs).toBe(100);
});

test('limits of workers add up, but for those that the upstream reports for all of them', () => {
  const other: LimiterView = {
    ...limiter,
    inFlight: 1,
    maxInFlight: 2,
    learned: [
      { name: 'requests', limit: 60, left: 15 },
      { name: 'tokens', limit: 900, left: 800 },
    ],
    learnedInFlight: 2,
    pausedMs: 700,
    waiting: 0,
    expectedMs: 900,
  };
  const join = (second: LimiterView) =>
    joinUpstreams([upstream()], [[upstream()], [upstream({ limiter: second })]])[0]?.limiter;
  const joined = {
    inFlight: 3,
    maxInFlight: 5,
    startsLeft: 20,
    tokensLeft: null,
    learned: other.learned,
    learnedInFlight: 5,
    pausedMs: 700,
    waiting: 1,
    expectedMs: 900,
  };
  expect(join(other)).toEqual({ ...limiter, ...joined });
  expect(join({ ...other, maxInFlight: null })?.maxInFlight).toBeNull();
  const models = [{ ...limits, model: 'tiny' }];
  const pauses = [
    { model: 'tiny', pausedMs: 300 },
    { model: null, pausedMs: 100 },
  ];
  const first = upstream({ limiter: { ...limiter, models, pauses } });
  const second = upstream({
    limiter: {
      ...limiter,
      models: [{ ...limits, ...joined, model: 'tiny' }],
      pauses: [{ model: 'tiny', pausedMs: 900 }],
    },
  });
  expect(joinUpstreams([first], [[first], [second]])[0]?.limiter).toMatchObject({
    models: [{ model: 'tiny', inFlight: 5, maxInFlight: 8, waiting: 2, expectedMs: 900 }],
    pauses: [
      { model: null, pausedMs: 100 },
      { model: 'tiny', pausedMs: 900 },
    ],
  });
});

test('shadow routes have the sums of all workers, and the latest failure', () => {
  const failure = { outcome: 'failed' as never, cause: null, upstreamError: null };
  const first = shadow({}, { lastFailure: { ...failure, atMs: 10 }, sinceMs: 1_000 });
  const second = shadow({}, { lastFailure: { ...failure, atMs: 20 }, skipped: { budget: 3 } });
  const [joined] = joinShadows([second], [[first], [second]]);
  expect(joined).toMatchObject({
    terms: { share: 0.5, budgetNanos: 10_000, maxInFlight: 8 },
    running: 2,
    budget: { spentNanos: 200, heldNanos: 20, endMs: 86_400_000 },
    counts: { sinceMs: 1_000, outcomes: { completed: 4 }, skipped: { budget: 3 }, pairs: 4, timedPairs: 2 },
  });
  expect(joined?.counts.answers).toEqual({ characters: 20, firstTextMs: 40, totalMs: 60, costNanos: 80 });
  expect(joined?.counts.lastFailure?.atMs).toBe(20);
  const free = shadow({ budgetNanos: null });
  expect(joinShadows([free], [[free], [free]])[0]?.terms.budgetNanos).toBeNull();
});

import type { LimitsView, LimiterView } from '../domain/ports/upstream-limiters.ts';
import type { RouteMeasureView } from '../domain/routing/route-measure.ts';
import type { ShadowView } from '../domain/shadows/shadow-book.ts';
import type { Availability, CircuitView, UpstreamState } from '../domain/upstreams/circuit.ts';
import type { ModelHealth } from '../domain/upstreams/known-upstream.ts';
import {
  asOwn,
  byFields,
  byId,
  firstKnown,
  greatest,
  ifKnown,
  ifOwn,
  latest,
  sum,
  sumOfLimits,
  sums,
  greatestBy,
} from './join-fields.ts';
import type { Join, JoinField } from './join-fields.ts';
import type { KnownUpstream, ServedModel, ServedModels } from './known-upstreams.ts';
import { worstReport } from './read-status.ts';

/** What a process alone knows of the upstreams and the shadow routes of the config in force. */
export interface ProcessViews {
  readonly upstreams: readonly KnownUpstream[];
  readonly shadows: readonly ShadowView[];
}

const harm = { available: 0, failing: 1, cooling: 2 } satisfies Record<Availability, number>;
const circuitHarm = { closed: 0, half_open: 1, open: 2 } satisfies Record<UpstreamState, number>;

const joinAvailability = greatestBy((availability: Availability) => harm[availability]);

/** The circuit of the worst worker: of those in one state, that with the most failures in a row. Any pause holds for all. */
const joinCircuits: Join<CircuitView> = (all, own) => {
  const [found = own] = all.toSorted(
    (one, other) =>
      circuitHarm[other.state] - circuitHarm[one.state] ||
      other.consecutiveFailures - one.consecutiveFailures,
  );
  const pauses = all.map(({ pausedUntilMs }) => pausedUntilMs);
  return { ...found, pausedUntilMs: latest(pauses, null) };
};

/** Times weigh as much as they have been measured: a quantile of all would need every time. */
const meanTime: JoinField<number | null, RouteMeasureView> = (times, _own, measures) => {
  const timed = times.flatMap((time, at) =>
    time === null ? [] : [{ time, weight: Math.max(measures[at]?.firstTexts ?? 0, leastWeight) }],
  );
  const weights = sum(timed.map(({ weight }) => weight));
  return timed.length === 0 ? null : sum(timed.map(({ time, weight }) => time * weight)) / weights;
};

/** What times of some days ago weigh, which are rounded down to nothing. */
const leastWeight = 1e-9;

/** A limit that an upstream reports is one of all workers together: the smallest rest is nearest to what it has counted. */
const leastLeft: Join<LimitsView['learned']> = (all) => {
  const least = new Map<string, LimitsView['learned'][number]>();
  for (const limit of all.flat())
    if (limit.left < (least.get(limit.name)?.left ?? Number.POSITIVE_INFINITY)) least.set(limit.name, limit);
  return [...least.values()];
};

/** A worker that has learned no limit of requests in progress uses those that are configured. */
const sumOfLearned: JoinField<number | null, LimitsView> = (all, _own, limits) =>
  all.every((learned) => learned === null)
    ? null
    : sumOfLimits(limits.map(({ learnedInFlight, maxInFlight }) => learnedInFlight ?? maxInFlight));

/** The longest pause of each model. */
const longest: Join<LimiterView['pauses']> = (all) => {
  const sorted = all.flat().toSorted((one, other) => one.pausedMs - other.pausedMs);
  return [...new Map(sorted.map((pause) => [pause.model, pause])).values()];
};

const limits = {
  inFlight: sum,
  maxInFlight: sumOfLimits,
  startsLeft: sumOfLimits,
  tokensLeft: sumOfLimits,
  learned: leastLeft,
  learnedInFlight: sumOfLearned,
  pausedMs: greatest,
  waiting: sum,
  expectedMs: greatest,
};

const joinLimiter = byFields<LimiterView>({
  ...asOwn('upstream'),
  ...limits,
  models: byId(
    ({ model }) => model,
    byFields<LimiterView['models'][number]>({ ...asOwn('model'), ...limits }),
  ),
  pauses: longest,
});

/** A model may have several routes to the same model of an upstream. */
function routeId({ model, upstreamModel, place }: ServedModel): string {
  return JSON.stringify([model, upstreamModel, place]);
}

const joinRoute = byFields<ServedModel>({
  ...asOwn('model', 'upstreamModel', 'place', 'weight', 'policy', 'price'),
  measured: ifOwn(
    byFields<RouteMeasureView>({
      inFlight: sum,
      waiting: sum,
      firstTexts: sum,
      firstTextMs: meanTime,
      firstTextP95Ms: meanTime,
      isFailing: (all) => all.includes(true),
    }),
  ),
  health: ifKnown(
    byFields<ModelHealth>({ circuit: joinCircuits, availability: joinAvailability, cause: firstKnown }),
  ),
});

const joinUpstream = byFields<KnownUpstream>({
  ...asOwn('name', 'dialect', 'origin', 'isProbed', 'passthrough', 'isDiscovered'),
  report: worstReport,
  availability: joinAvailability,
  pausedUntilMs: latest,
  circuit: joinCircuits,
  probes: ifOwn(joinCircuits),
  okAtMs: latest,
  failedAtMs: latest,
  served: ifOwn(byFields<ServedModels>({ models: byId(routeId, joinRoute), ...asOwn('hasMore') })),
  counts: byFields({ attempts: sums, violations: sums }),
  limiter: ifOwn(joinLimiter),
});

function targetOf({ terms: { model, route } }: ShadowView): string {
  return JSON.stringify([model, route.upstream, route.model]);
}

const latestFailure: Join<ShadowView['counts']['lastFailure']> = ifKnown(greatestBy(({ atMs }) => atMs));

/** Budgets and limits of shadow routes are of each worker, so they add up, too. */
const joinShadow = byFields<ShadowView>({
  terms: byFields<ShadowView['terms']>({
    ...asOwn('model', 'route', 'share', 'price'),
    budgetNanos: sumOfLimits,
    maxInFlight: sum,
  }),
  running: sum,
  budget: byFields<ShadowView['budget']>({ spentNanos: sum, heldNanos: sum, ...asOwn('endMs') }),
  counts: byFields<ShadowView['counts']>({
    sinceMs: (all) => Math.min(...all),
    outcomes: sums,
    skipped: sums,
    verdicts: sums,
    pairs: sum,
    timedPairs: sum,
    answers: sums,
    shadows: sums,
    lastFailure: latestFailure,
  }),
});

/**
 * What the workers of a gateway know together of the upstreams: `own` is what this one knows, and `all` is what those know
 * that answered.
 */
export function joinUpstreams(
  own: readonly KnownUpstream[],
  all: readonly (readonly KnownUpstream[])[],
): readonly KnownUpstream[] {
  return byId<KnownUpstream>(({ name }) => name, joinUpstream)(all, own);
}

/** The same of shadow routes. */
export function joinShadows(
  own: readonly ShadowView[],
  all: readonly (readonly ShadowView[])[],
): readonly ShadowView[] {
  return byId(targetOf, joinShadow)(all, own);
}

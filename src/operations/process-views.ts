import type { LimitsView, LimiterView } from '../domain/ports/upstream-limiters.ts';
import type { RouteMeasureView } from '../domain/routing/route-measure.ts';
import type { ShadowView } from '../domain/shadows/shadow-book.ts';
import type { Availability, CircuitView, UpstreamState } from '../domain/upstreams/circuit.ts';
import type { ModelHealth } from '../domain/upstreams/known-upstream.ts';
import type { KnownUpstream, ServedModel } from './known-upstreams.ts';
import { worstReport } from './read-status.ts';

/** What a process alone knows of the upstreams and the shadow routes of the config in force. */
export interface ProcessViews {
  readonly upstreams: readonly KnownUpstream[];
  readonly shadows: readonly ShadowView[];
}

/**
 * What the workers of a gateway know together of the upstreams: `own` is what this one knows, and `all` is what those know
 * that answered. Circuits are those of the worst worker, counts are sums.
 */
export function joinUpstreams(
  own: readonly KnownUpstream[],
  all: readonly (readonly KnownUpstream[])[],
): readonly KnownUpstream[] {
  return own.map((upstream) => {
    const others = all.flatMap((list) => list.find(({ name }) => name === upstream.name) ?? []);
    return others.length === 0 ? upstream : joinUpstream(upstream, others);
  });
}

/** The same of shadow routes. Their budgets and limits are of each worker, so they add up, too. */
export function joinShadows(
  own: readonly ShadowView[],
  all: readonly (readonly ShadowView[])[],
): readonly ShadowView[] {
  return own.map((shadow) => {
    const same = all.flatMap((list) => list.find(({ terms }) => hasSameTarget(terms, shadow.terms)) ?? []);
    return same.length === 0 ? shadow : joinShadow(shadow, same);
  });
}

function joinUpstream(own: KnownUpstream, all: readonly KnownUpstream[]): KnownUpstream {
  const { probes, served, limiter } = own;
  return {
    ...own,
    report: worstReport(all.map(({ report }) => report)) ?? own.report,
    availability: worstOf(all.map(({ availability }) => availability)),
    pausedUntilMs: latest(all.map(({ pausedUntilMs }) => pausedUntilMs)),
    circuit: joinCircuits(all.map(({ circuit }) => circuit)) ?? own.circuit,
    probes: probes === null ? null : joinCircuits(all.flatMap((each) => each.probes ?? [])),
    okAtMs: latest(all.map(({ okAtMs }) => okAtMs)),
    failedAtMs: latest(all.map(({ failedAtMs }) => failedAtMs)),
    served: served === null ? null : { ...served, models: joinModels(served.models, all) },
    counts: {
      attempts: addUp(all.map(({ counts }) => counts.attempts)),
      violations: addUp(all.map(({ counts }) => counts.violations)),
    },
    limiter: limiter === null ? null : joinLimiters(all.flatMap((each) => each.limiter ?? [])),
  };
}

function worstOf(all: readonly Availability[]): Availability {
  return all.reduce((worst, next) => (harm[next] > harm[worst] ? next : worst));
}

const harm = { available: 0, failing: 1, cooling: 2 } satisfies Record<Availability, number>;
const circuitHarm = { closed: 0, half_open: 1, open: 2 } satisfies Record<UpstreamState, number>;

/** The circuit of the worst worker: of those in one state, that with the most failures in a row; `null` without any. */
function joinCircuits(all: readonly CircuitView[]): CircuitView | null {
  const [worst] = all.toSorted(
    (one, other) =>
      circuitHarm[other.state] - circuitHarm[one.state] ||
      other.consecutiveFailures - one.consecutiveFailures,
  );
  if (worst === undefined) return null;
  return { ...worst, pausedUntilMs: latest(all.map(({ pausedUntilMs }) => pausedUntilMs)) };
}

function joinModels(own: readonly ServedModel[], all: readonly KnownUpstream[]): readonly ServedModel[] {
  const routes = Map.groupBy(
    all.flatMap(({ served }) => served?.models ?? []),
    routeId,
  );
  return own.map((route) => {
    const same = routes.get(routeId(route)) ?? [];
    const measures = same.flatMap(({ measured }) => measured ?? []);
    return {
      ...route,
      measured: route.measured === null || measures.length === 0 ? route.measured : joinMeasures(measures),
      health: joinHealth(same.flatMap(({ health }) => health ?? [])) ?? route.health,
    };
  });
}

function joinHealth(all: readonly ModelHealth[]): ModelHealth | null {
  const circuit = joinCircuits(all.map((each) => each.circuit));
  if (circuit === null) return null;
  return {
    circuit,
    availability: worstOf(all.map(({ availability }) => availability)),
    cause: all.find(({ cause }) => cause !== null)?.cause ?? null,
  };
}

/** A model may have several routes to the same model of an upstream. */
function routeId({ model, upstreamModel, place }: ServedModel): string {
  return JSON.stringify([model, upstreamModel, place]);
}

/** Times weigh as much as they have been measured: a quantile of all would need every time. */
function joinMeasures(all: readonly RouteMeasureView[]): RouteMeasureView {
  const mean = (timeOf: (one: RouteMeasureView) => number | null): number | null => {
    const timed = all.flatMap((one) => {
      const time = timeOf(one);
      return time === null ? [] : [{ time, weight: Math.max(one.firstTexts, leastWeight) }];
    });
    const weights = sum(timed.map(({ weight }) => weight));
    return timed.length === 0 ? null : sum(timed.map(({ time, weight }) => time * weight)) / weights;
  };
  return {
    inFlight: sum(all.map(({ inFlight }) => inFlight)),
    waiting: sum(all.map(({ waiting }) => waiting)),
    firstTexts: sum(all.map(({ firstTexts }) => firstTexts)),
    firstTextMs: mean(({ firstTextMs }) => firstTextMs),
    firstTextP95Ms: mean(({ firstTextP95Ms }) => firstTextP95Ms),
    isFailing: all.some(({ isFailing }) => isFailing),
  };
}

/** What times of some days ago weigh, which are rounded down to nothing. */
const leastWeight = 1e-9;

function hasSameTarget(one: ShadowView['terms'], other: ShadowView['terms']): boolean {
  return (
    one.model === other.model &&
    one.route.upstream === other.route.upstream &&
    one.route.model === other.route.model
  );
}

function joinShadow({ terms, budget }: ShadowView, all: readonly ShadowView[]): ShadowView {
  const counts = all.map((each) => each.counts);
  const failures = counts.flatMap(({ lastFailure }) => lastFailure ?? []);
  return {
    terms: {
      ...terms,
      budgetNanos: sumOfLimits(all.map((each) => each.terms.budgetNanos)),
      maxInFlight: sum(all.map((each) => each.terms.maxInFlight)),
    },
    running: sum(all.map(({ running }) => running)),
    budget: {
      spentNanos: sum(all.map((each) => each.budget.spentNanos)),
      heldNanos: sum(all.map((each) => each.budget.heldNanos)),
      endMs: budget.endMs,
    },
    counts: {
      sinceMs: Math.min(...counts.map(({ sinceMs }) => sinceMs)),
      outcomes: addUp(counts.map(({ outcomes }) => outcomes)),
      skipped: addUp(counts.map(({ skipped }) => skipped)),
      verdicts: addUp(counts.map(({ verdicts }) => verdicts)),
      pairs: sum(counts.map(({ pairs }) => pairs)),
      timedPairs: sum(counts.map(({ timedPairs }) => timedPairs)),
      answers: addUp(counts.map(({ answers }) => answers)),
      shadows: addUp(counts.map(({ shadows }) => shadows)),
      lastFailure: failures.toSorted((one, other) => other.atMs - one.atMs)[0] ?? null,
    },
  };
}

/** Adds up counts by their names. */
function addUp<Counts extends object>(all: readonly Counts[]): Counts {
  const sums = new Map<string, number>();
  for (const counts of all)
    for (const [name, count] of Object.entries(counts)) sums.set(name, (sums.get(name) ?? 0) + Number(count));
  return Object.fromEntries(sums) as Counts;
}

/** The latest of some times; `null` without any. */
function latest(all: readonly (number | null)[]): number | null {
  const known = all.filter((each) => each !== null);
  return known.length === 0 ? null : Math.max(...known);
}

/** How a limiter is used by all workers together, by the models of the first one; `null` without any. */
function joinLimiters(all: readonly LimiterView[]): LimiterView | null {
  const [first] = all;
  if (first === undefined) return null;
  return {
    ...first,
    ...joinLimits(all),
    models: first.models.map(({ model }) => {
      const same = all.flatMap(({ models }) => models.find((other) => other.model === model) ?? []);
      return Object.assign(joinLimits(same), { model });
    }),
    pauses: longestOf(all.flatMap(({ pauses }) => pauses)),
  };
}

function joinLimits(all: readonly LimitsView[]): LimitsView {
  const hasLearned = all.some(({ learnedInFlight }) => learnedInFlight !== null);
  return {
    inFlight: sum(all.map(({ inFlight }) => inFlight)),
    maxInFlight: sumOfLimits(all.map(({ maxInFlight }) => maxInFlight)),
    startsLeft: sumOfLimits(all.map(({ startsLeft }) => startsLeft)),
    tokensLeft: sumOfLimits(all.map(({ tokensLeft }) => tokensLeft)),
    learned: joinLearned(all),
    learnedInFlight: hasLearned
      ? sumOfLimits(all.map(({ learnedInFlight, maxInFlight }) => learnedInFlight ?? maxInFlight))
      : null,
    pausedMs: Math.max(...all.map(({ pausedMs }) => pausedMs)),
    waiting: sum(all.map(({ waiting }) => waiting)),
    expectedMs: Math.max(...all.map(({ expectedMs }) => expectedMs)),
  };
}

/** The longest pause of each model. */
function longestOf(pauses: LimiterView['pauses']): LimiterView['pauses'] {
  const sorted = pauses.toSorted((one, other) => one.pausedMs - other.pausedMs);
  return [...new Map(sorted.map((pause) => [pause.model, pause])).values()];
}

/** A limit that an upstream reports is one of all workers together: the smallest rest is nearest to what it has counted. */
function joinLearned(all: readonly LimitsView[]): LimitsView['learned'] {
  const least = new Map<string, LimitsView['learned'][number]>();
  for (const limit of all.flatMap(({ learned }) => learned))
    if (limit.left < (least.get(limit.name)?.left ?? Number.POSITIVE_INFINITY)) least.set(limit.name, limit);
  return [...least.values()];
}

/** The sum of what each worker has. */
function sum(all: readonly number[]): number {
  return all.reduce((total, each) => total + each, 0);
}

/** `null` if one worker has no limit: then they have none together. */
function sumOfLimits(all: readonly (number | null)[]): number | null {
  const known = all.filter((each) => each !== null);
  return known.length < all.length ? null : sum(known);
}

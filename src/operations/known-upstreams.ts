import type { Availability, CircuitView } from '../domain/upstreams/circuit.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { LimiterView, UpstreamLimiters } from '../domain/ports/upstream-limiters.ts';
import type { UpstreamCounts } from '../domain/ports/status.ts';
import { priceAt } from '../domain/money/price-changes.ts';
import type { ChangingPrice } from '../domain/money/price-changes.ts';
import type { ModelPrice } from '../domain/money/pricing.ts';
import type { RouteMeasureView } from '../domain/routing/route-measure.ts';
import type { ModelHealth } from '../domain/upstreams/known-upstream.ts';
import type { UpstreamHealth } from '../domain/upstreams/upstream-health.ts';
import { reportUpstream } from './report-upstreams.ts';
import type { UpstreamReport } from './report-upstreams.ts';
import type { PolicyName } from '../domain/routing/policy-names.ts';

/** How many models of an upstream are listed: one that lists its own may have thousands. */
export const maxListedRoutes = 200;

/** What the config says of an upstream, without secrets. */
export interface ConfiguredUpstream {
  readonly name: string;
  /** The protocol that it is called in. */
  readonly dialect: string;
  /** Scheme, host and port. */
  readonly origin: string;
  readonly isProbed: boolean;
  /** The passthrough paths that lead to it. */
  readonly passthrough: readonly string[];
  /** Whether its models are those that it lists. */
  readonly isDiscovered: boolean;
}

/** A model that an upstream serves. */
export interface ServedModel {
  readonly model: string;
  /** The model's name there. */
  readonly upstreamModel: string;
  /** The place in the order of the model's routes, from 1 on. */
  readonly place: number;
  readonly weight: number | null;
  /** How the model's routes are ordered; `null` without a setting. */
  readonly policy: PolicyName | null;
  /** What the attempts of this process show of the route; `null` if it is not measured. */
  readonly measured: RouteMeasureView | null;
  /** What this process knows of the model there; `null` if it was not asked for. */
  readonly health: ModelHealth | null;
  readonly price: ModelPrice;
}

/** The first models that an upstream serves. */
export interface ServedModels {
  readonly models: readonly ServedModel[];
  readonly hasMore: boolean;
}

/**
 * What is read of a model on offer. The whole type leads to the dialects, which browsers have no types for: the console
 * reads those of this list.
 */
interface OfferedRoutes extends ChangingPrice {
  readonly id: string;
  readonly routes: readonly {
    readonly upstream: string;
    readonly model: string;
    readonly weight: number | null;
    readonly measure: { view(nowMs: number): RouteMeasureView } | null;
  }[];
  readonly policy: PolicyName | null;
}

/** An upstream with all that one process knows of it; what it does not know is `null`. Times are in milliseconds since 1970. */
export interface KnownUpstream extends ConfiguredUpstream {
  readonly report: UpstreamReport;
  readonly availability: Availability;
  /** Until when all of its models that were asked for pause, in milliseconds since 1970; `null` if one does not. */
  readonly pausedUntilMs: number | null;
  /** That of what concerns all of its models. */
  readonly circuit: CircuitView;
  /** That of its probes; `null` without probes. */
  readonly probes: CircuitView | null;
  readonly okAtMs: number | null;
  readonly failedAtMs: number | null;
  /** `null` before the first list of a discovered upstream. */
  readonly served: ServedModels | null;
  readonly counts: UpstreamCounts;
  /** How its limits are used; `null` without limits. */
  readonly limiter: LimiterView | null;
}

/** Where a process reads what it knows of upstreams. */
export interface KnownSources {
  readonly upstreams: readonly ConfiguredUpstream[];
  readonly health: UpstreamHealth;
  readonly clock: Clock;
  /** The models on offer; `null` while no list of them could be read. */
  readonly offered: () => Iterable<OfferedRoutes> | null;
  readonly counts: () => ReadonlyMap<string, UpstreamCounts>;
  readonly upstreamLimiters: Pick<UpstreamLimiters, 'views'>;
}

const nothingCounted: UpstreamCounts = { attempts: {}, violations: {} };
const nothingServed: ServedModels = { models: [], hasMore: false };

/** What this process alone knows of all upstreams of a config, in its order. */
export function knownUpstreams(sources: KnownSources): readonly KnownUpstream[] {
  const { upstreams, health, clock } = sources;
  const offered = sources.offered();
  const counts = sources.counts();
  const upstreamLimiters = new Map(
    sources.upstreamLimiters.views().map((limiter) => [limiter.upstream, limiter]),
  );
  const sinceStartMs = clock.now() - clock.monotonicMs();
  const known = new Map(upstreams.map(({ name }) => [name, health.circuits(name)]));
  const healthOf = (upstream: string, model: string): ModelHealth | null => {
    const found = known.get(upstream)?.models.get(model);
    return found === undefined ? null : { ...found, circuit: onWallClock(found.circuit, sinceStartMs) };
  };
  const served = servedBy(offered ?? [], healthOf, clock);
  return upstreams.map((upstream) => {
    const { name } = upstream;
    const contact = health.contact(name);
    const circuits = known.get(name) ?? health.circuits(name);
    const facts = {
      report: reportUpstream(name, health),
      availability: health.upstreamAvailability(name),
      pausedUntilMs: pauseEndOf([...circuits.models.values()], sinceStartMs),
      circuit: onWallClock(circuits.requests, sinceStartMs),
      probes: upstream.isProbed ? onWallClock(circuits.probes, sinceStartMs) : null,
      okAtMs: contact?.okAtMs ?? null,
      failedAtMs: contact?.failedAtMs ?? null,
      served: upstream.isDiscovered && offered === null ? null : (served.get(name) ?? nothingServed),
      counts: counts.get(name) ?? nothingCounted,
      limiter: upstreamLimiters.get(name) ?? null,
    };
    return Object.assign(facts, upstream);
  });
}

/** The models of each upstream, by its name. */
function servedBy(
  offered: Iterable<OfferedRoutes>,
  healthOf: (upstream: string, model: string) => ModelHealth | null,
  clock: Clock,
): ReadonlyMap<string, ServedModels> {
  const found = new Map<string, { models: ServedModel[]; hasMore: boolean }>();
  for (const one of offered) {
    const { id: model, routes, policy } = one;
    const price = priceAt(one, clock.now());
    for (const [index, { upstream, model: upstreamModel, weight, measure }] of routes.entries()) {
      const served = found.get(upstream) ?? { models: [], hasMore: false };
      found.set(upstream, served);
      if (served.models.length >= maxListedRoutes) {
        served.hasMore = true;
        continue;
      }
      const measured = measure === null ? null : measure.view(clock.monotonicMs());
      const health = healthOf(upstream, upstreamModel);
      served.models.push({ model, upstreamModel, place: index + 1, weight, policy, measured, health, price });
    }
  }
  return found;
}

/** When the first of some models pauses no more; `null` if one does not pause. */
function pauseEndOf(models: readonly ModelHealth[], sinceStartMs: number): number | null {
  const ends = models.flatMap(({ circuit }) => circuit.pausedUntilMs ?? []);
  return ends.length === 0 || ends.length < models.length ? null : Math.min(...ends) + sinceStartMs;
}

/** A circuit whose times are in milliseconds since 1970. */
function onWallClock(circuit: CircuitView, sinceStartMs: number): CircuitView {
  const { openSinceMs, trialAtMs, pausedUntilMs } = circuit;
  const at = (time: number | null): number | null => (time === null ? null : time + sinceStartMs);
  return {
    ...circuit,
    openSinceMs: at(openSinceMs),
    trialAtMs: at(trialAtMs),
    pausedUntilMs: at(pausedUntilMs),
  };
}

import type { Availability, CircuitView } from '../domain/circuit.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { RunningRequests } from '../domain/ports/running-requests.ts';
import type { UpstreamCounts } from '../domain/ports/status.ts';
import type { ModelPrice } from '../domain/pricing.ts';
import type { UpstreamHealth } from '../domain/upstream-health.ts';
import { inTime } from './in-time.ts';
import { countByUpstream } from './read-status.ts';
import { reportUpstream } from './report-upstreams.ts';
import type { UpstreamReport } from './report-upstreams.ts';

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
interface ServedModel {
  readonly model: string;
  /** The model's name there. */
  readonly upstreamModel: string;
  /** The place in the order of the model's routes, from 1 on. */
  readonly place: number;
  readonly weight: number | null;
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
interface OfferedRoutes {
  readonly id: string;
  readonly routes: readonly {
    readonly upstream: string;
    readonly model: string;
    readonly weight: number | null;
  }[];
  readonly price: ModelPrice;
}

/** A circuit; times are in milliseconds since 1970. */
export type TimedCircuit = CircuitView;

/** An upstream with all that the process knows of it; what it does not know is `null`. */
export interface ListedUpstream extends ConfiguredUpstream {
  readonly report: UpstreamReport;
  readonly availability: Availability;
  readonly circuit: TimedCircuit;
  /** That of its probes; `null` without probes. */
  readonly probes: TimedCircuit | null;
  readonly okAtMs: number | null;
  readonly failedAtMs: number | null;
  /** How many requests were last sent there; `null` while those of other nodes can't be read. */
  readonly running: number | null;
  /** `null` before the first list of a discovered upstream. */
  readonly served: ServedModels | null;
  readonly counts: UpstreamCounts;
}

/** Where the list of upstreams is read from. */
export interface UpstreamSources {
  readonly upstreams: readonly ConfiguredUpstream[];
  readonly health: UpstreamHealth;
  readonly clock: Clock;
  readonly running: Pick<RunningRequests, 'list'>;
  /** The models on offer; `null` while no list of them could be read. */
  readonly offered: () => Iterable<OfferedRoutes> | null;
  readonly counts: () => ReadonlyMap<string, UpstreamCounts>;
}

const nothingCounted: UpstreamCounts = { attempts: {}, violations: {} };
const nothingServed: ServedModels = { models: [], hasMore: false };

/** Lists all upstreams of a config, in its order. Never rejects: what can't be read in time is `null`. */
export async function listUpstreams(sources: UpstreamSources): Promise<readonly ListedUpstream[]> {
  const { upstreams, health, clock } = sources;
  const requests = await inTime(sources.running.list(), clock);
  const running = requests === null ? null : countByUpstream(requests);
  const offered = sources.offered();
  const served = servedBy(offered ?? []);
  const counts = sources.counts();
  const sinceStartMs = clock.now() - clock.monotonicMs();
  return upstreams.map((upstream) => {
    const { name } = upstream;
    const contact = health.contact(name);
    const circuits = health.circuits(name);
    const known = {
      report: reportUpstream(name, health),
      availability: health.availability(name),
      circuit: onWallClock(circuits.requests, sinceStartMs),
      probes: upstream.isProbed ? onWallClock(circuits.probes, sinceStartMs) : null,
      okAtMs: contact?.okAtMs ?? null,
      failedAtMs: contact?.failedAtMs ?? null,
      running: running === null ? null : (running.get(name) ?? 0),
      served: upstream.isDiscovered && offered === null ? null : (served.get(name) ?? nothingServed),
      counts: counts.get(name) ?? nothingCounted,
    };
    return Object.assign(known, upstream);
  });
}

/** The models of each upstream, by its name. */
function servedBy(offered: Iterable<OfferedRoutes>): ReadonlyMap<string, ServedModels> {
  const found = new Map<string, { models: ServedModel[]; hasMore: boolean }>();
  for (const { id, routes, price } of offered)
    for (const [index, { upstream, model, weight }] of routes.entries()) {
      const served = found.get(upstream) ?? { models: [], hasMore: false };
      found.set(upstream, served);
      if (served.models.length >= maxListedRoutes) served.hasMore = true;
      else served.models.push({ model: id, upstreamModel: model, place: index + 1, weight, price });
    }
  return found;
}

function onWallClock(circuit: CircuitView, sinceStartMs: number): TimedCircuit {
  const { openSinceMs, trialAtMs, pausedUntilMs } = circuit;
  const at = (time: number | null): number | null => (time === null ? null : time + sinceStartMs);
  return {
    ...circuit,
    openSinceMs: at(openSinceMs),
    trialAtMs: at(trialAtMs),
    pausedUntilMs: at(pausedUntilMs),
  };
}

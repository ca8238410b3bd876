import { isRefusal, refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import { reportChanges } from '../domain/fault-reports.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { ModelCatalogue, OfferedModel } from '../domain/routing.ts';
import type { Upstreams } from '../domain/ports/upstreams.ts';
import type { UpstreamHealth } from '../domain/upstreams/upstream-health.ts';
import { fetchModels } from './fetch-models.ts';
import type { FoundModels, Offer } from './fetch-models.ts';

/** How long a list stays fresh, in milliseconds. */
const freshMs = 60_000;

/** How soon a list that failed, or lacks a model, may be fetched again, in milliseconds. */
const retryMs = 2_000;

/** How many names a problem quotes. */
const maxShown = 5;

/** The models that an upstream lists. */
export interface FetchedModelList {
  readonly upstream: string;
  /** How many of them are on offer. */
  readonly count: number;
  /** What is wrong with the list or its call, and what to do; `null` if nothing is. */
  readonly problem: string | null;
}

/** A catalogue that is fetched from an upstream. */
export interface ModelDiscovery extends ModelCatalogue {
  /** The last list that could be read; `null` before the first one. */
  readonly lastGood: ReadonlyMap<string, OfferedModel> | null;
  /** What is wrong with the latest list or its call, and what to do; `null` if nothing is. */
  readonly problem: string | null;
  /** Fetches the list if it is not known yet; `null` after `close`. */
  fetchList(): Promise<FetchedModelList | null>;
  /** Ends a fetch under way: its failure is no fault of the upstream, and is not reported. */
  close(): void;
}

/** What the discovery needs. */
export interface DiscoveryPorts {
  readonly upstreams: Upstreams;
  readonly clock: Clock;
  readonly health: Pick<UpstreamHealth, 'contacted'>;
  /** Called with a problem, once until it changes, and with `null` when it is over. */
  readonly onChange: (upstream: string, problem: string | null) => void;
  /** Called with every list that could be read. */
  readonly onFound: () => void;
}

/**
 * Offers the models that an upstream lists. The last good list serves while it is renewed and while the upstream is down;
 * an unknown name has the list fetched again, so that a new model is found at once.
 */
export function createModelDiscovery(
  offer: Offer,
  ports: DiscoveryPorts,
  lastGood: ReadonlyMap<string, OfferedModel> | null = null,
): ModelDiscovery {
  const { clock, health, onChange, onFound } = ports;
  const { upstream } = offer.source;
  const report = reportChanges((changed) => onChange(upstream, changed));
  let models = lastGood;
  let problem: string | null = null;
  let fetchedMs = Number.NEGATIVE_INFINITY;
  let fetching: Promise<void> | null = null;
  const closed = new AbortController();

  const fetchList = async (): Promise<void> => {
    fetchedMs = clock.monotonicMs();
    const fetched = await fetchModels(offer, ports.upstreams, clock, closed.signal);
    if (closed.signal.aborted) return;
    health.contacted(upstream, fetched.kind === 'failed' ? fetched.problem : null);
    if (fetched.kind === 'found') {
      models = fetched.models;
      onFound();
    }
    problem = fetched.kind === 'failed' ? fetched.problem : problemIn(fetched, offer);
    report(problem);
  };
  /** Fetches the list again if it is older than `maxAgeMs`; concurrent callers share one fetch. */
  const refresh = async (maxAgeMs: number): Promise<void> => {
    if (fetching === null && clock.monotonicMs() - fetchedMs >= maxAgeMs) {
      fetching = fetchList().finally(() => (fetching = null));
    }
    await fetching;
  };
  const current = async (): Promise<ReadonlyMap<string, OfferedModel> | Refusal> => {
    if (models === null) await refresh(retryMs);
    else void refresh(freshMs);
    return models ?? unknownModels(problem);
  };
  return {
    get lastGood() {
      return models;
    },
    get problem() {
      return problem;
    },
    async fetchList() {
      await current();
      return closed.signal.aborted ? null : { upstream, count: models?.size ?? 0, problem };
    },
    close: () => closed.abort(),
    async find(id) {
      const known = await current();
      if (isRefusal(known)) return known;
      if (!known.has(id)) await refresh(retryMs);
      return models?.get(id) ?? null;
    },
    async list() {
      const known = await current();
      return isRefusal(known) ? known : [...known.values()];
    },
  };
}

/** What an operator should mend about a list; `null` when nothing. */
function problemIn({ models, unusable, shared }: FoundModels, { allow }: Offer): string | null {
  if (unusable > 0) return `${unusable} models left out: control characters in their names`;
  if (shared.length > 0)
    return `models.rename gives several models the same name, and only the first of each in the list is offered: ${shared.slice(0, maxShown).join(', ')}`;
  return models.size > 0 ? null : `no model of the list is allowed by ${JSON.stringify(allow)}`;
}

/** `problem` is why the list could not be fetched, for the operator. */
function unknownModels(problem: string | null): Refusal {
  return refuse(
    'upstream_unavailable',
    'The list of models is not available from the provider yet. Try again shortly.',
    {
      retryAfterMs: retryMs,
      cause: problem === null ? null : `no list of models yet: ${problem}`,
    },
  );
}

import { diagnose, sentencesOf } from '../domain/diagnosis/diagnose.ts';
import type { FailedCall } from '../domain/diagnosis/diagnose.ts';
import { reportChanges } from '../domain/fault-reports.ts';
import type { HiddenPrompt } from '../domain/money/hidden-prompt.ts';
import type { ChangingPrice } from '../domain/money/price-changes.ts';
import type { Clock } from '../domain/ports/clock.ts';
import { getCall } from '../domain/ports/upstreams.ts';
import type { Upstreams, UpstreamAnswer, UpstreamFault } from '../domain/ports/upstreams.ts';
import { unknownCreation } from '../domain/routing.ts';
import type { ModelCatalogue, OfferedModel, ModelSource } from '../domain/routing.ts';
import type { UpstreamHealth } from '../domain/upstreams/upstream-health.ts';
import { readModels } from '../protocol/upstream/read-models.ts';
import type { ListedModel } from '../protocol/upstream/read-models.ts';
import { hasControlCharacters } from '../shared/control-characters.ts';
import { isRefusal, refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import { matchName, renameBy } from '../shared/name-pattern.ts';
import { maxModelNameLength } from '../shared/schema-values.ts';

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
export type ModelDiscovery = ReturnType<typeof createModelDiscovery>;

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
) {
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
    /** The last list that could be read; `null` before the first one. */
    get lastGood() {
      return models;
    },
    /** What is wrong with the latest list or its call, and what to do; `null` if nothing is. */
    get problem() {
      return problem;
    },
    /** Fetches the list if it is not known yet; `null` after `close`. */
    async fetchList(): Promise<FetchedModelList | null> {
      await current();
      return closed.signal.aborted ? null : { upstream, count: models?.size ?? 0, problem };
    },
    /** Ends a fetch under way: its failure is no fault of the upstream, and is not reported. */
    close: () => closed.abort(),
    knows: (id: string) => models?.has(id) === true,
    async find(id: string): ReturnType<ModelCatalogue['find']> {
      const known = await current();
      if (isRefusal(known)) return known;
      if (!known.has(id)) await refresh(retryMs);
      return models?.get(id) ?? null;
    },
    async list(): ReturnType<ModelCatalogue['list']> {
      const known = await current();
      return isRefusal(known) ? known : [...known.values()];
    },
  };
}

/** What an operator should mend about a list; `null` when nothing. */
function problemIn({ models, unusable, shared }: FoundModels, { allow }: Offer): string | null {
  if (unusable > 0)
    return `${unusable} models left out: control characters in their names, or more than ${maxModelNameLength} characters`;
  if (shared.length > 0)
    return `models.rename gives several models the same name, and only the first of each in the list is offered: ${shared.slice(0, maxShown).join(', ')}`;
  if (models.size > 0) return null;
  return allow.includes('*')
    ? 'the list has no models'
    : `no model of the list is allowed by ${JSON.stringify(allow)}`;
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

/** How long an upstream may take to list its models, in milliseconds. */
const fetchLimitMs = 5_000;

/** How much of a list is read, in UTF-16 code units, and how many of its models are offered. */
const maxListChars = 1_048_576;
const maxModels = 1_000;

/**
 * How old a creation time must be to be believed, in seconds. vLLM, SGLang and llama.cpp send the time of the request:
 * it would be another one in every list.
 */
const leastAgeSeconds = 3_600;

/** Which models of an upstream's list are offered, and how. */
export interface Offer extends ChangingPrice {
  readonly source: ModelSource;
  /** The path of the list below the upstream's base URL. */
  readonly listPath: string;
  /** Patterns of upstream names; a model is offered if one of them matches. */
  readonly allow: readonly string[];
  /** Public names by patterns of upstream names. */
  readonly rename: Readonly<Record<string, string>>;
  readonly holdTokens: number;
  /** The prompt that the upstream may add for a model of its list. */
  readonly hiddenOf?: (name: string) => HiddenPrompt;
}

/** The offered models of a list. */
interface FoundModels {
  readonly kind: 'found';
  readonly models: ReadonlyMap<string, OfferedModel>;
  /** How many names were left out for their control characters or their length. */
  readonly unusable: number;
  /** The public names that `rename` gives to several models, of which the first in the list has it. */
  readonly shared: readonly string[];
}

/** Fetches the list of an upstream, within a time limit; `closed` ends it early. */
async function fetchModels(
  offer: Offer,
  upstreams: Upstreams,
  clock: Clock,
  closed: AbortSignal,
): Promise<FoundModels | { readonly kind: 'failed'; readonly problem: string }> {
  const limit = new AbortController();
  const cancel = clock.schedule(fetchLimitMs, () => limit.abort());
  const { source, listPath: path } = offer;
  try {
    const answer = await upstreams.call(
      getCall(source.upstream, path, fetchLimitMs),
      AbortSignal.any([limit.signal, closed]),
    );
    const list = answer.kind === 'fault' ? answer : await readList(answer);
    if (list.kind === 'list') return offerModels(list.models, offer, Math.floor(clock.now() / 1_000));
    const call = { method: 'GET', path, target: source.target, limitMs: fetchLimitMs } as const;
    return { kind: 'failed', problem: sentencesOf(diagnose(call, list)) };
  } finally {
    cancel();
  }
}

/** Reads the list in an answer; the answer itself if it has none, or the fault that broke it off. */
async function readList(
  answer: UpstreamAnswer,
): Promise<FailedCall | { readonly kind: 'list'; readonly models: readonly ListedModel[] }> {
  const text = answer.status === 200 ? await readText(answer) : null;
  if (text === null) answer.release();
  if (text !== null && typeof text !== 'string') return text;
  const models = text === null ? null : readModels(text);
  return models === null ? answer : { kind: 'list', models };
}

/** The body of an answer, or the fault that broke it off; `null` if it is too long for a list. */
async function readText(answer: UpstreamAnswer): Promise<string | UpstreamFault | null> {
  const decoder = new TextDecoder();
  let text = '';
  while (text.length <= maxListChars) {
    const part = await answer.read();
    if (part === null) return text;
    if (!(part instanceof Uint8Array)) return part;
    text += decoder.decode(part, { stream: true });
  }
  return null;
}

/**
 * The allowed models of a list, under their public names. A name with control characters, or one that is very long, is left
 * out: it would reach logs, terminals and pages.
 */
function offerModels(
  listed: readonly ListedModel[],
  { source, allow, rename, holdTokens, hiddenOf, price, priceChanges }: Offer,
  nowSeconds: number,
): FoundModels {
  const models = new Map<string, OfferedModel>();
  const shared = new Set<string>();
  let unusable = 0;
  for (const { name, createdAtSeconds: listedSeconds } of listed) {
    if (hasControlCharacters(name) || name.length > maxModelNameLength) {
      unusable++;
      continue;
    }
    const id = renameBy(rename, name);
    const isWanted = allow.some((pattern) => matchName(pattern, name) !== null);
    if (!isWanted) continue;
    const other = models.get(id)?.routes[0];
    if (other !== undefined && other.model !== name) shared.add(id);
    if (other !== undefined || models.size >= maxModels) continue;
    const hidden = hiddenOf?.(name);
    const found = { ...source, model: name, weight: null, cost: null, measure: null };
    const routes = [hidden === undefined ? found : { ...found, hidden }];
    const isKnown = listedSeconds !== null && listedSeconds <= nowSeconds - leastAgeSeconds;
    const createdAtSeconds = isKnown ? listedSeconds : unknownCreation;
    const model = { id, createdAtSeconds, routes, policy: null, price, holdTokens };
    models.set(id, priceChanges === undefined ? model : { ...model, priceChanges });
  }
  return { kind: 'found', models, unusable, shared: [...shared] };
}

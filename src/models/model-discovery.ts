import { hasControlCharacters } from '../shared/control-characters.ts';
import { isRefusal, refuse } from '../shared/errors.ts';
import { matchName, renameBy } from '../shared/name-pattern.ts';
import type { Refusal } from '../shared/errors.ts';
import { getCall } from '../domain/get-call.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { ModelCatalogue } from '../domain/ports/models.ts';
import type { ReportFault } from '../domain/ports/telemetry.ts';
import type { Upstreams } from '../domain/ports/upstreams.ts';
import type { ModelPrice } from '../domain/pricing.ts';
import type { ModelSource, OfferedModel } from '../domain/routing.ts';
import { readModels } from '../protocol/upstream/read-models.ts';
import type { ListedModel } from '../protocol/upstream/read-models.ts';

/** How long a list stays fresh, in milliseconds. */
const freshMs = 60_000;

/** How soon a list that failed, or lacks a model, may be fetched again, in milliseconds. */
const retryMs = 2_000;

/** How long an upstream may take to list its models, in milliseconds. */
const fetchLimitMs = 5_000;

/** How much of a list is read, in UTF-16 code units, and how many of its models are offered. */
const maxListChars = 1_048_576;
const maxModels = 1_000;

/** Which models of an upstream's list are offered, and how. */
export interface Offer {
  readonly source: ModelSource;
  /** The path of the list below the upstream's base URL. */
  readonly listPath: string;
  /** Patterns of upstream names; a model is offered if one of them matches. */
  readonly allow: readonly string[];
  /** Public names by patterns of upstream names. */
  readonly rename: Readonly<Record<string, string>>;
  readonly price: ModelPrice;
  readonly holdTokens: number;
}

/** A catalogue that is fetched from an upstream. */
export interface ModelDiscovery extends ModelCatalogue {
  /** The last list that could be read; `null` before the first one. */
  readonly lastGood: ReadonlyMap<string, OfferedModel> | null;
}

/**
 * Offers the models that an upstream lists. The last good list serves while it is renewed and while the upstream is down;
 * an unknown name has the list fetched again, so that a new model is found at once.
 */
export function createModelDiscovery(
  offer: Offer,
  upstreams: Upstreams,
  clock: Clock,
  report: ReportFault,
  lastGood: ReadonlyMap<string, OfferedModel> | null = null,
): ModelDiscovery {
  let models = lastGood;
  /** The last reported problem: each is logged once until it changes. */
  let reported: string | null = null;
  let fetchedMs = Number.NEGATIVE_INFINITY;
  let fetching: Promise<void> | null = null;

  const fetchList = async (): Promise<void> => {
    fetchedMs = clock.monotonicMs();
    const found = await fetchModels(offer, models, upstreams, clock);
    models = found?.models ?? models;
    const problem = found === null ? 'the answer is not a list of models' : problemIn(found, offer);
    const { upstream } = offer.source;
    if (problem !== null && problem !== reported) report('model discovery failed', problem, { upstream });
    reported = problem;
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
    return models ?? unknownModels();
  };
  return {
    get lastGood() {
      return models;
    },
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

/** The offered models of a list. */
interface Found {
  readonly models: ReadonlyMap<string, OfferedModel>;
  /** How many names were left out for their control characters. */
  readonly unusable: number;
}

/** What an operator should mend about a list; `null` when nothing. */
function problemIn({ models, unusable }: Found, { allow }: Offer): string | null {
  if (unusable > 0) return `${unusable} models left out: control characters in their names`;
  return models.size > 0 ? null : `no model of the list is allowed by ${JSON.stringify(allow)}`;
}

function unknownModels(): Refusal {
  return refuse(
    'upstream_unavailable',
    'The list of models is not available from the provider yet. Try again shortly.',
    {
      retryAfterMs: retryMs,
    },
  );
}

/** Fetches the list; `null` when the upstream did not answer with one. */
async function fetchModels(
  offer: Offer,
  before: ReadonlyMap<string, OfferedModel> | null,
  upstreams: Upstreams,
  clock: Clock,
): Promise<Found | null> {
  const limit = new AbortController();
  const cancel = clock.schedule(fetchLimitMs, () => limit.abort());
  try {
    const text = await fetchText(offer, upstreams, limit.signal);
    const listed = text === null ? null : readModels(text);
    return listed === null ? null : offerModels(listed, offer, before, Math.floor(clock.now() / 1_000));
  } finally {
    cancel();
  }
}

async function fetchText(
  { source: { upstream }, listPath: path }: Offer,
  upstreams: Upstreams,
  signal: AbortSignal,
): Promise<string | null> {
  const answer = await upstreams.call(getCall(upstream, path, fetchLimitMs), signal);
  if (answer.kind === 'fault') return null;
  const decoder = new TextDecoder();
  let text = '';
  while (answer.status === 200 && text.length <= maxListChars) {
    const part = await answer.read();
    if (part === null) return text;
    if (!(part instanceof Uint8Array)) return null;
    text += decoder.decode(part, { stream: true });
  }
  answer.release();
  return null;
}

/**
 * The allowed models of a list, under their public names. A model without a creation time in the list keeps the time at
 * which it was first seen. A name with control characters is left out: it would reach logs and terminals.
 */
function offerModels(
  listed: readonly ListedModel[],
  { source, allow, rename, price, holdTokens }: Offer,
  before: ReadonlyMap<string, OfferedModel> | null,
  nowSeconds: number,
): Found {
  const models = new Map<string, OfferedModel>();
  let unusable = 0;
  for (const { name, createdAtSeconds: createdAt } of listed) {
    if (hasControlCharacters(name)) {
      unusable++;
      continue;
    }
    const id = renameBy(rename, name);
    const isWanted = allow.some((pattern) => matchName(pattern, name) !== null);
    if (!isWanted || models.has(id) || models.size >= maxModels) continue;
    const routes = [{ ...source, model: name, weight: null }];
    const known = createdAt ?? before?.get(id)?.createdAtSeconds ?? nowSeconds;
    models.set(id, { id, createdAtSeconds: known, routes, price, holdTokens });
  }
  return { models, unusable };
}

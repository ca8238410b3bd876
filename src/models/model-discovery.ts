import { hasControlCharacters } from '../shared/control-characters.ts';
import { isRefusal, refuse } from '../shared/errors.ts';
import { matchName, renameBy } from '../shared/name-pattern.ts';
import type { Refusal } from '../shared/errors.ts';
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

/** How soon a failed or an outdated list may be asked for again, in milliseconds. */
const retryMs = 2_000;

/** How long an upstream may take to list its models, in milliseconds. */
const askLimitMs = 5_000;

/** How much of a list is read, in bytes, and how many of its models are offered. */
const maxListBytes = 1_048_576;
const maxModels = 1_000;

/** Which models of an upstream's list are offered, and how. */
export interface Offer {
  readonly source: ModelSource;
  /** Where the list is, below the upstream's base URL. */
  readonly listPath: string;
  /** Patterns of the upstream's names, of which one must fit. */
  readonly allow: readonly string[];
  /** Our names by patterns of theirs. */
  readonly rename: Readonly<Record<string, string>>;
  readonly price: ModelPrice;
  readonly holdTokens: number;
}

/** Models asked of an upstream, and the list that would serve while it is away. */
export interface ModelDiscovery extends ModelCatalogue {
  readonly lastGood: ReadonlyMap<string, OfferedModel> | null;
}

/**
 * Offers what an upstream lists under its list of models. The last good list serves while it is renewed, and while the
 * upstream is away; a name that is not on it has the list asked for again, so that a new model is found at once.
 */
export function createModelDiscovery(
  offer: Offer,
  upstreams: Upstreams,
  clock: Clock,
  report: ReportFault,
  lastGood: ReadonlyMap<string, OfferedModel> | null = null,
): ModelDiscovery {
  let models = lastGood;
  /** What was last told of the list, so that an operator hears of a change once. */
  let told: string | null = null;
  let askedMs = Number.NEGATIVE_INFINITY;
  let asking: Promise<void> | null = null;

  const ask = async (): Promise<void> => {
    askedMs = clock.monotonicMs();
    const found = await fetchModels(offer, models, upstreams, clock);
    models = found?.models ?? models;
    const trouble = found === null ? 'it does not answer with a list of models' : troubleIn(found, offer);
    if (trouble !== null && trouble !== told) report(`the upstream ${offer.source.upstream}`, trouble);
    told = trouble;
  };
  /** Brings the list up to date if it is older than `maxAgeMs`; callers at once share one question. */
  const refresh = async (maxAgeMs: number): Promise<void> => {
    if (asking === null && clock.monotonicMs() - askedMs >= maxAgeMs) {
      asking = ask().finally(() => (asking = null));
    }
    await asking;
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

/** What is offered of a list, and how many of its names can't be. */
interface Found {
  readonly models: ReadonlyMap<string, OfferedModel>;
  readonly unusable: number;
}

/** What an operator should know of a list; `null` when all is well. */
function troubleIn({ models, unusable }: Found, { allow }: Offer): string | null {
  if (unusable > 0) return `${unusable} of its models are left out: control characters in their names`;
  return models.size > 0 ? null : `none of its models is allowed by ${JSON.stringify(allow)}`;
}

function unknownModels(): Refusal {
  return refuse(
    'upstream_unavailable',
    "The model's provider has not said yet which models it has. Try again shortly.",
    {
      retryAfterMs: retryMs,
    },
  );
}

/** `null` when the upstream did not answer with a list. */
async function fetchModels(
  offer: Offer,
  before: ReadonlyMap<string, OfferedModel> | null,
  upstreams: Upstreams,
  clock: Clock,
): Promise<Found | null> {
  const limit = new AbortController();
  const cancel = clock.schedule(askLimitMs, () => limit.abort());
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
  const call = {
    upstream,
    method: 'GET',
    path,
    body: null,
    stream: false,
    leftMs: askLimitMs,
    fresh: false,
  } as const;
  const answer = await upstreams.call(call, signal);
  if (answer.kind === 'fault') return null;
  const decoder = new TextDecoder();
  let text = '';
  while (answer.status === 200 && text.length <= maxListBytes) {
    const part = await answer.read();
    if (part === null) return text;
    if (!(part instanceof Uint8Array)) return null;
    text += decoder.decode(part, { stream: true });
  }
  answer.release();
  return null;
}

/**
 * The models of a list as they are offered: those that are allowed, under the names that they are given. One whose age
 * the list does not tell keeps the time at which it was seen first. A name that a terminal would obey rather than show is
 * left out: it would reach logs and tables.
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

import { hasControlCharacters } from '../shared/control-characters.ts';
import { matchName, renameBy } from '../shared/name-pattern.ts';
import { diagnose, sentencesOf } from '../domain/diagnosis/diagnose.ts';
import type { FailedCall } from '../domain/diagnosis/diagnose.ts';
import { getCall } from '../domain/ports/upstreams.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { UpstreamAnswer, UpstreamFault, Upstreams } from '../domain/ports/upstreams.ts';
import type { HiddenPrompt } from '../domain/money/hidden-prompt.ts';
import type { ModelPrice } from '../domain/money/pricing.ts';
import { unknownCreation } from '../domain/routing.ts';
import type { ModelSource, OfferedModel } from '../domain/routing.ts';
import { readModels } from '../protocol/upstream/read-models.ts';
import type { ListedModel } from '../protocol/upstream/read-models.ts';

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
  /** The prompt that the upstream may add for a model of its list. */
  readonly hiddenOf?: (name: string) => HiddenPrompt;
}

/** The offered models of a list. */
export interface FoundModels {
  readonly kind: 'found';
  readonly models: ReadonlyMap<string, OfferedModel>;
  /** How many names were left out for their control characters. */
  readonly unusable: number;
  /** The public names that `rename` gives to several models, of which the first in the list has it. */
  readonly shared: readonly string[];
}

/** A call that did not bring a list. */
export interface FailedFetch {
  readonly kind: 'failed';
  readonly problem: string;
}

/** Fetches the list of an upstream, within a time limit; `closed` ends it early. */
export async function fetchModels(
  offer: Offer,
  upstreams: Upstreams,
  clock: Clock,
  closed: AbortSignal,
): Promise<FoundModels | FailedFetch> {
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
 * The allowed models of a list, under their public names. A name with control characters is left out: it would reach
 * logs and terminals.
 */
function offerModels(
  listed: readonly ListedModel[],
  { source, allow, rename, price, holdTokens, hiddenOf }: Offer,
  nowSeconds: number,
): FoundModels {
  const models = new Map<string, OfferedModel>();
  const shared = new Set<string>();
  let unusable = 0;
  for (const { name, createdAtSeconds: listedSeconds } of listed) {
    if (hasControlCharacters(name)) {
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
    models.set(id, { id, createdAtSeconds, routes, policy: null, price, holdTokens });
  }
  return { kind: 'found', models, unusable, shared: [...shared] };
}

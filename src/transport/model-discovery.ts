import { isRefusal, refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import type { Clock, ModelCatalogue, Upstreams } from '../domain/ports.ts';
import { free } from '../domain/pricing.ts';
import type { ModelSource, OfferedModel } from '../domain/routing.ts';

/** How long a list stays fresh, in milliseconds. */
const freshMs = 60_000;

/** How soon a failed or an outdated list may be asked for again, in milliseconds. */
const retryMs = 2_000;

/** How long an upstream may take to list its models, in milliseconds. */
const askLimitMs = 5_000;

/** How much of a list is read, in bytes, and how many of its models are offered. */
const maxListBytes = 1_048_576;
const maxModels = 1_000;

/**
 * Offers what an upstream lists under its `/models`. The last good list serves while it is renewed, and while the
 * upstream is away; a name that is not on it has the list asked for again, so that a new model is found at once.
 */
export function createModelDiscovery(
  source: ModelSource,
  upstreams: Upstreams,
  clock: Clock,
): ModelCatalogue {
  let models: ReadonlyMap<string, OfferedModel> | null = null;
  let askedMs = Number.NEGATIVE_INFINITY;
  let asking: Promise<void> | null = null;

  const ask = async (): Promise<void> => {
    askedMs = clock.monotonicMs();
    models = (await fetchModels(source, upstreams, clock)) ?? models;
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
  source: ModelSource,
  upstreams: Upstreams,
  clock: Clock,
): Promise<ReadonlyMap<string, OfferedModel> | null> {
  const limit = new AbortController();
  const cancel = clock.schedule(askLimitMs, () => limit.abort());
  try {
    const text = await fetchText(source.upstream, upstreams, limit.signal);
    return text === null ? null : readModelList(text, source, Math.floor(clock.now() / 1_000));
  } finally {
    cancel();
  }
}

async function fetchText(
  upstream: string,
  upstreams: Upstreams,
  signal: AbortSignal,
): Promise<string | null> {
  const call = { upstream, method: 'GET', path: '/models', body: null, stream: false, spentMs: 0 } as const;
  const answer = await upstreams.call(call, signal);
  if ('fault' in answer) return null;
  const decoder = new TextDecoder();
  let text = '';
  while (answer.status === 200 && text.length <= maxListBytes) {
    const part = await answer.read();
    if (part === null) return text;
    if ('fault' in part) return null;
    text += decoder.decode(part, { stream: true });
  }
  answer.release();
  return null;
}

/** Reads `{"data":[{"id","created"}]}`; entries without a usable id are left out. */
function readModelList(
  text: string,
  source: ModelSource,
  nowSeconds: number,
): ReadonlyMap<string, OfferedModel> | null {
  try {
    const { data } = JSON.parse(text) as { data: readonly ({ id: unknown; created: unknown } | null)[] };
    const models = data
      .filter((entry) => entry !== null)
      .filter(({ id }) => typeof id === 'string' && id !== '')
      .slice(0, maxModels)
      .map(({ id, created }) => ({
        id: id as string,
        createdAt: Number.isSafeInteger(created) ? (created as number) : nowSeconds,
        routes: [{ ...source, model: id as string, weight: null }],
        price: free,
        holdTokens: 0,
      }));
    return new Map(models.map((model) => [model.id, model]));
  } catch {
    return null;
  }
}

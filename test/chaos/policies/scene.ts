import { MemoryUpstreamLimiters } from '../../../src/coordination/upstream-limiter/memory-upstream-limiters.ts';
import type { LimiterSettings } from '../../../src/domain/ports/upstream-limiters.ts';
import type { ExchangeSummary } from '../../../src/domain/exchange-summary.ts';
import { free } from '../../../src/domain/money/pricing.ts';
import type { OfferedModel, OnDisconnect, Route } from '../../../src/domain/routing.ts';
import { HedgeBudgets } from '../../../src/domain/routing/hedging.ts';
import type { HedgePolicy } from '../../../src/domain/routing/hedging.ts';
import { RouteMeasure } from '../../../src/domain/routing/route-measure.ts';
import { ShadowBook } from '../../../src/domain/shadows/shadow-book.ts';
import { UpstreamHealth } from '../../../src/domain/upstreams/upstream-health.ts';
import type { Ports } from '../../../src/pipeline/ports.ts';
import { runPassthrough } from '../../../src/pipeline/run-passthrough.ts';
import { runTextRequest } from '../../../src/pipeline/run-request.ts';
import { createShadows } from '../../../src/pipeline/shadows/shadows.ts';
import { withheldStatuses } from '../../../src/protocol/upstream/classify-error.ts';
import { modelPrice } from '../../support/model-price.ts';
import { localRoute, usualSettings } from '../../support/model-source.ts';
import type { PipelineHarness } from '../../support/pipeline-harness.ts';
import { limiterSettings } from '../../support/limiter-scene.ts';
import { gridMs } from './behaviours.ts';
import { createClient } from './client.ts';
import type { Client } from './client.ts';
import { WaitWatch } from './wait-watch.ts';
import { MoodyUpstreams } from './upstreams.ts';
import { WatchedLimiters } from './watched-limiters.ts';
import { policyNames } from '../../../src/domain/routing/policy-names.ts';

export const price = modelPrice({ input: 1_000_000_000, cachedInput: 1_000_000_000, output: 2_000_000_000 });
export const passedPrice = modelPrice({ input: 0, request: 500 });

/** The names of the upstreams with routes, and of that of shadows. */
const upstreamNames = ['a', 'b', 'c'] as const;
const shadowName = 'shadow';

/** Output to expect of a request without a cap: as much as an upstream answers at most. */
const holdTokens = 60;

/** The most virtual time of a scene, in milliseconds: a request that is not over by then is lost. */
const longestMs = 3_600_000;

/** One request of a scene, and what became of it. */
export interface Asked {
  readonly number: number;
  readonly id: string;
  readonly keyId: string;
  readonly protocol: 'chat' | 'responses' | 'passthrough';
  readonly isStream: boolean;
  readonly model: OfferedModel | null;
  /** The most tokens that its text may have. */
  readonly mostInput: number;
  readonly client: Client;
  readonly summaries: ExchangeSummary[];
  isDone: boolean;
}

/** What is drawn for a scene. */
interface Scenery {
  readonly settings: ReadonlyMap<string, LimiterSettings>;
  readonly models: readonly OfferedModel[];
  readonly latestMs: number;
  readonly isLearning: boolean;
  readonly onDisconnect: OnDisconnect;
}

export interface Scene extends Scenery {
  readonly asked: readonly Asked[];
  readonly upstreams: MoodyUpstreams;
  readonly limiters: WatchedLimiters;
  readonly waits: WaitWatch;
  /** Slots that were taken and not given back. */
  readonly slots: ReadonlySet<string>;
  /** Shadows that still run. */
  readonly shadowsRunning: number;
}

interface Draw {
  readonly chance: (share: number) => boolean;
  readonly one: <Thing>(things: readonly Thing[]) => Thing;
  readonly random: () => number;
}

export function drawWith(random: () => number): Draw {
  return {
    random,
    chance: (share) => random() < share,
    one: (things) => things[Math.floor(random() * things.length)] as (typeof things)[number],
  };
}

function drawScenery({ chance, one, random }: Draw): Scenery {
  const isLearning = chance(0.2);
  const queueWaitMs = one([0, 2_000, 10_000, 30_000, 60_000]);
  const settings = new Map<string, LimiterSettings>();
  for (const name of upstreamNames) {
    if (!chance(0.75)) continue;
    const own = {
      maxInFlight: chance(0.7) ? one([1, 2, 4]) : null,
      requestsPerMinute: chance(0.4) ? one([20, 60, 200]) : null,
      tokensPerMinute: chance(0.4) ? one([1_000, 4_000, 16_000]) : null,
      learnLimits: isLearning,
    };
    if (Object.values(own).every((limit) => limit === null || limit === false)) continue;
    settings.set(name, limiterSettings({ ...own, queue: one([1, 5, 100]), queueWaitMs }));
  }
  const onDisconnect = one(['estimate', 'drain', 'free'] as const);
  const source = {
    ...localRoute,
    onDisconnect,
    totalMs: one([10_000, 20_000]),
    ...(chance(0.5) ? { firstTextMs: one([500, 2_000, 5_000]) } : {}),
    ...(chance(0.3) ? { retryWithinMs: one([300, 2_000]) } : {}),
  };
  const models = [5, 3, 2, 1].map((count, at): OfferedModel => {
    const policy = chance(0.3) ? null : one(policyNames);
    const weighted = chance(0.5);
    const from = Math.floor(random() * upstreamNames.length);
    const routes = Array.from({ length: count }, (_, step): Route => {
      const upstream = upstreamNames[(from + step) % upstreamNames.length] ?? 'a';
      const cost = { input: Math.ceil(random() * 1_000), output: Math.ceil(random() * 1_000) };
      return {
        ...source,
        upstream,
        model: `m${step}`,
        weight: weighted ? 1 + step : null,
        cost,
        measure: new RouteMeasure(),
      };
    });
    const hedge: HedgePolicy = {
      after: chance(0.3) ? { kind: 'quantile', share: 0.9 } : { kind: 'time', ms: one([0, 100, 500, 1_500]) },
      budget: one([0.05, 0.3, 1]),
    };
    const settled = { id: `m${at}`, policy, price, holdTokens, routes };
    return Object.assign({}, usualSettings, settled, chance(0.5) ? { hedge } : {});
  });
  return { settings, models, latestMs: one([0, 0, 300]), isLearning, onDisconnect };
}

/** The keys of all scenes, by their ids, with the balances of those that pay. */
export async function addKeys(pipeline: PipelineHarness): Promise<readonly string[]> {
  const balances = [null, null, null, 1e15, 1e15, 20_000_000];
  return Promise.all(
    balances.map(async (balance, at) => {
      const id = await pipeline.addKey(balance, `key_${at}`);
      const limits = at === 1 ? { concurrency: 3, queueWaitMs: 2_000 } : {};
      pipeline.change(id, { weight: 1 + (at % 3), limits });
      return id;
    }),
  );
}

/** Plays so many requests in one scenery, numbered from `first` on, and waits until all is over. */
export async function playScene(
  pipeline: PipelineHarness,
  keyIds: readonly string[],
  draw: Draw,
  { first, requests }: { readonly first: number; readonly requests: number },
): Promise<Scene> {
  const scenery = drawScenery(draw);
  const { models, settings, latestMs, isLearning } = scenery;
  const { clock } = pipeline;
  const { chance, one, random } = draw;
  const byId = new Map<string, Asked>();
  const health = new UpstreamHealth(clock);
  const inner = new MemoryUpstreamLimiters(clock, settings, {
    pausedMs: (target) => health.coolingMs(target),
  });
  const limiters = new WatchedLimiters(inner, clock);
  const upstreams = new MoodyUpstreams(clock, random, latestMs, isLearning);
  const slots = new Set<string>();
  const book = new ShadowBook(clock, { skipped() {}, ended() {}, compared() {} });
  const shadowUpstream = one([shadowName, ...upstreamNames]);
  const shadowRoutes = models.map(({ id }) => ({
    model: id,
    route: { ...localRoute, upstream: shadowUpstream, model: 'copy', totalMs: 10_000 },
    share: 0.2,
    price: free,
    budgetNanos: null,
    maxInFlight: 3,
    holdTokens,
  }));
  book.configure(shadowRoutes);
  const { limiter } = pipeline.ports;
  const ports: Ports = {
    ...pipeline.ports,
    health,
    upstreamLimiters: limiters,
    upstreams,
    random,
    hedges: new HedgeBudgets(),
    models: {
      knows: () => true,
      find: async (id) => models.find((model) => model.id === id) ?? null,
      list: async () => models,
    },
    limiter: {
      knownRefusal: (...asked) => limiter.knownRefusal(...asked),
      async acquire(keyId, requestId, ...rest) {
        const decision = await limiter.acquire(keyId, requestId, ...rest);
        if (decision.verdict === 'granted') slots.add(requestId);
        return decision;
      },
      async release(keyId, requestId) {
        slots.delete(requestId);
        return limiter.release(keyId, requestId);
      },
    },
    telemetry: {
      ...pipeline.ports.telemetry,
      exchangeEnded: (summary) => void byId.get(summary.requestId)?.summaries.push(summary),
    },
  };
  const shadows = createShadows(shadowRoutes, { ...ports, book });
  const withShadows: Ports = { ...ports, shadows: chance(0.5) ? shadows : null };
  const waysOf = (requestId: string): readonly Route[] => {
    const { number, model } = byId.get(requestId) ?? { number: -1, model: null };
    const isSent = upstreams.callsOf(number).some(({ isShadow }) => !isShadow);
    return isSent || model === null ? [] : model.routes;
  };
  const waits = new WaitWatch({ settings, limiters, upstreams, clock, health, waysOf });
  const asked: Asked[] = [];

  const ask = (): void => {
    const number = first + asked.length;
    const kind = random();
    const isStream = chance(0.6);
    const model = one(models);
    const keyId = one(keyIds);
    const text = `request ${number}. ${'x'.repeat(Math.floor(random() * 200))}`;
    const protocol = kind < 0.08 ? 'passthrough' : kind < 0.5 ? 'chat' : 'responses';
    const cap = chance(0.4) ? 15 + Math.floor(random() * 100) : undefined;
    const said =
      protocol === 'chat'
        ? { messages: [{ role: 'user', content: text }], max_tokens: cap }
        : { input: text, max_output_tokens: cap };
    const client = createClient(number, keyId, { model: model.id, stream: isStream, ...said });
    const id = `req_${client.connection.id}`;
    const isPassed = protocol === 'passthrough';
    const asking: Asked = {
      number,
      id,
      keyId,
      protocol,
      isStream,
      model: isPassed ? null : model,
      mostInput: text.length + 32,
      client,
      summaries: [],
      isDone: false,
    };
    asked.push(asking);
    byId.set(id, asking);
    const done = isPassed
      ? pass(asking, one(upstreamNames), withShadows, upstreams)
      : runTextRequest(protocol, client.connection, withShadows);
    void done.then(() => (asking.isDone = true));
    if (chance(0.25))
      clock.schedule(gridMs * Math.floor(random() * 300), () => void (asking.isDone || client.leave()));
  };

  const endMs = clock.monotonicMs() + longestMs;
  let nextMs = clock.monotonicMs();
  const paceMs = one([100, 400, 2_000, 5_000]);
  const isOver = (): boolean =>
    asked.length === requests &&
    asked.every(({ isDone }) => isDone) &&
    upstreams.calls.every(({ overMs }) => overMs !== null);
  while (!isOver() && clock.monotonicMs() < endMs) {
    const arrivalInMs = asked.length < requests ? nextMs - clock.monotonicMs() : Number.POSITIVE_INFINITY;
    const stepMs = Math.min(arrivalInMs, clock.nextInMs);
    waits.check(stepMs);
    clock.advance(Math.min(stepMs, longestMs));
    if (stepMs === arrivalInMs) {
      for (let burst = chance(0.1) ? 12 : 1; burst > 0 && asked.length < requests; burst--) ask();
      nextMs = clock.monotonicMs() + gridMs * Math.ceil((random() * 2 * paceMs) / gridMs);
    }
    await pipeline.quiet();
  }
  await shadows.close();
  await pipeline.quiet();
  inner.close();
  const shadowsRunning = book.views().reduce((sum, { running }) => sum + running, 0);
  return { ...scenery, asked, upstreams, limiters, waits, slots, shadowsRunning };
}

/** Passes a request on to an upstream. */
function pass(
  { number, client }: Asked,
  upstream: string,
  ports: Ports,
  upstreams: MoodyUpstreams,
): Promise<void> {
  const path = { path: '/v1/embeddings', upstream, price: passedPrice };
  return runPassthrough(
    path,
    client.connection,
    {
      requestFault: null,
      forward: (_trace, signal, onHead, onAnswered) =>
        upstreams.pass(number, upstream, signal, (head) => {
          onAnswered?.(head);
          if (!withheldStatuses.has(head.status)) onHead(head.status);
        }),
    },
    ports,
  );
}

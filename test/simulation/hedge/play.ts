import { HedgeBudgets } from '../../../src/domain/routing/hedging.ts';
import type { HedgePolicy, HedgeResult } from '../../../src/domain/routing/hedging.ts';
import { RouteMeasure } from '../../../src/domain/routing/route-measure.ts';
import type { Clock } from '../../../src/domain/ports/clock.ts';
import type { UpstreamAnswer, Upstreams } from '../../../src/domain/ports/upstreams.ts';
import type { OfferedModel } from '../../../src/domain/routing.ts';
import { UpstreamHealth } from '../../../src/domain/upstreams/upstream-health.ts';
import { AttemptLog } from '../../../src/pipeline/attempts/attempt-log.ts';
import type { Exchange } from '../../../src/pipeline/exchange.ts';
import type { Ports } from '../../../src/pipeline/ports.ts';
import { ReceivedAnswer } from '../../../src/pipeline/attempts/received-answer.ts';
import type { Dispatched, TextWork } from '../../../src/pipeline/stages.ts';
import { tryRoutes } from '../../../src/pipeline/attempts/try-routes.ts';
import { untraced } from '../../../src/telemetry/traces/tracing.ts';
import { bodyOf } from '../../support/body-of.ts';
import { localRoute, usualSettings } from '../../support/model-source.ts';
import { modelPrice } from '../../support/model-price.ts';
import { seededNumbers } from '../../support/random-numbers.ts';
import { chatFrames } from '../../support/scripted-upstream.ts';
import { VirtualTime } from '../virtual-time.ts';

/** How long the first text of an upstream takes, in milliseconds; `nowMs` is the time of the request. */
export interface Shape {
  readonly name: string;
  readonly firstTextMs: (random: () => number, nowMs: number) => number;
}

/** What came of the requests of one play. */
export interface Played {
  /** From the arrival of each request to its first text, in milliseconds, in ascending order. */
  readonly firstTexts: readonly number[];
  /** How many requests the upstreams got for each request of a client, less 1. */
  readonly extra: number;
  readonly hedges: Readonly<Record<HedgeResult, number>>;
}

/** The mean time between two requests, in milliseconds: they come at random. */
const meanGapMs = 50;

const answerText = chatFrames(['x']).join('');

/**
 * Sends requests of one model with two routes through the pipeline's own `tryRoutes`, on virtual time. Both upstreams
 * have the same shape, and every call draws its time anew. The same seed makes the same arrivals and, without second
 * requests, the same times.
 */
export async function play(
  { firstTextMs }: Shape,
  policy: HedgePolicy | null,
  { requests, seed }: { readonly requests: number; readonly seed: number },
): Promise<Played> {
  const time = new VirtualTime();
  const clock: Clock = {
    now: () => time.nowMs,
    monotonicMs: () => time.nowMs,
    schedule: (delayMs, callback) => time.after(delayMs, callback),
  };
  const arrivals = seededNumbers(seed);
  const times = seededNumbers(seed + 1);
  let calls = 0;
  const upstreams: Upstreams = {
    async call(_call, signal) {
      calls++;
      return answerAfter(firstTextMs(times, time.nowMs), time, signal);
    },
  };
  const ports = {
    clock,
    upstreams,
    health: new UpstreamHealth(clock),
    hedges: new HedgeBudgets(),
    fastPath: true,
    telemetry: {
      fault: (message: string, error: unknown) => {
        throw new Error(message, { cause: error });
      },
    },
  } as unknown as Ports;
  const model: OfferedModel = {
    ...usualSettings,
    id: 'm',
    price: modelPrice({ input: 1, cachedInput: 1, output: 1 }),
    holdTokens: 1,
    routes: [
      { ...localRoute, upstream: 'near', measure: new RouteMeasure() },
      { ...localRoute, upstream: 'far', measure: new RouteMeasure() },
    ],
    ...(policy === null ? {} : { hedge: policy }),
  };
  const firstTexts: number[] = [];
  const hedges = { won: 0, lost: 0, failed: 0, refused: 0 };
  const ask = async (): Promise<void> => {
    const arrivedMs = time.nowMs;
    const attempts = new AttemptLog();
    const opened = await tryRoutes(
      { turns: [{ role: 'user', text: 'x' }], stream: true, maxOutputTokens: null, stop: [] },
      { model, routes: model.routes, received: new ReceivedAnswer() } as unknown as TextWork,
      { key: { id: 'key_1' }, dispatchedMs: arrivedMs, attempts } as unknown as Dispatched,
      exchangeAt(arrivedMs),
      ports,
    );
    if (opened.kind !== 'opened') throw new Error(`a request ended as ${opened.kind}`);
    firstTexts.push(time.nowMs - arrivedMs);
    if (attempts.hedge !== null) hedges[attempts.hedge]++;
    opened.release();
  };
  const errors: unknown[] = [];
  let left = requests;
  const arrive = (): void => {
    left--;
    ask().catch((error: unknown) => errors.push(error));
    if (left > 0) time.after(-Math.log(1 - arrivals()) * meanGapMs, arrive);
  };
  time.after(0, arrive);
  await time.run(() => errors.length > 0 || firstTexts.length === requests);
  if (errors.length > 0) throw errors[0];
  return { firstTexts: firstTexts.toSorted((a, b) => a - b), extra: (calls - requests) / requests, hedges };
}

function exchangeAt(arrivedMs: number): Exchange {
  return {
    arrivedMs,
    interruption: new AbortController(),
    trace: untraced.begin({ method: 'POST', route: '/', trace: {} }),
    client: { authorization: '' },
    stage: { stage: 'arrived' },
    permits: null,
  } as unknown as Exchange;
}

/** An answer whose whole text comes after a time. */
function answerAfter(delayMs: number, time: VirtualTime, signal: AbortSignal): UpstreamAnswer {
  let isSent = false;
  return {
    kind: 'answer',
    status: 200,
    contentType: 'text/event-stream',
    retryAfterMs: null,
    ...bodyOf(() => {
      if (isSent) return Promise.resolve(null);
      isSent = true;
      return new Promise((resolve) => {
        const cancel = time.after(delayMs, () => resolve(Buffer.from(answerText)));
        signal.addEventListener('abort', () => {
          cancel();
          resolve({ kind: 'fault', fault: 'interrupted' });
        });
      });
    }),
    release: () => {},
  };
}

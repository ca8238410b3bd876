import { afterEach, beforeEach, expect, test } from 'vitest';
import { MemoryUpstreamLimiters } from '../../src/coordination/upstream-limiter/memory-upstream-limiters.ts';
import { HedgeBudgets } from '../../src/domain/routing/hedging.ts';
import { RouteMeasure } from '../../src/domain/routing/route-measure.ts';
import type {
  BodyPiece,
  UpstreamAnswer,
  UpstreamFault,
  Upstreams,
} from '../../src/domain/ports/upstreams.ts';
import type { Permit } from '../../src/domain/ports/upstream-limiters.ts';
import type { OfferedModel, Route } from '../../src/domain/routing.ts';
import { UpstreamHealth } from '../../src/domain/upstreams/upstream-health.ts';
import type { Ports } from '../../src/pipeline/ports.ts';
import { bodyOf } from '../support/body-of.ts';
import { readAnswerBody } from '../support/client-answer.ts';
import { modelPrice } from '../support/model-price.ts';
import { localRoute, usualSettings } from '../support/model-source.ts';
import { limiterSettings } from '../support/limiter-scene.ts';
import { openPipeline } from '../support/pipeline-harness.ts';
import type { DrivenRequest, PipelineHarness } from '../support/pipeline-harness.ts';
import { chatFrames } from '../support/scripted-upstream.ts';
import { behaviours } from '../support/upstream-behaviours.ts';

const price = modelPrice({ input: 1_000_000_000, cachedInput: 1_000_000_000, output: 2_000_000_000 });
const afterMs = 2_000;
const interrupted: UpstreamFault = { kind: 'fault', fault: 'interrupted' };

/** A call whose head and whose only piece come when the test says so; it ends at once when it is stopped. */
class HeldCall {
  readonly #head = Promise.withResolvers<UpstreamAnswer | UpstreamFault>();
  readonly #piece = Promise.withResolvers<BodyPiece>();
  readonly head = this.#head.promise;

  readonly signal: AbortSignal;

  constructor(signal: AbortSignal) {
    this.signal = signal;
    signal.addEventListener('abort', () => {
      this.#head.resolve(interrupted);
      this.#piece.resolve(interrupted);
    });
  }

  answer(): void {
    const pieces = [this.#piece.promise, Promise.resolve(null)];
    this.#head.resolve({
      ...(behaviours['good']?.play() as UpstreamAnswer),
      ...bodyOf(() => pieces.shift() ?? Promise.resolve(null)),
    });
  }

  play(behaviour: string): void {
    this.#head.resolve(behaviours[behaviour]?.play() ?? interrupted);
  }

  say(text: string): void {
    this.#piece.resolve(Buffer.from(chatFrames([text]).join('')));
  }

  /** Sends a complete answer without text. */
  sayNothing(): void {
    this.#piece.resolve(Buffer.from(chatFrames([]).join('')));
  }

  /** Sends an answer whose text was blocked. */
  block(): void {
    const choice = { index: 0, delta: {}, finish_reason: 'content_filter' };
    this.#piece.resolve(Buffer.from(`data: ${JSON.stringify({ choices: [choice] })}\n\ndata: [DONE]\n\n`));
  }
}

let pipeline: PipelineHarness;
let keyId: string;
let calls: HeldCall[];
let health: UpstreamHealth;
let routes: readonly Route[];

beforeEach(async () => {
  pipeline = await openPipeline(price, 100);
  keyId = await pipeline.addKey(1_000_000_000_000);
  calls = [];
  health = new UpstreamHealth(pipeline.clock);
  routes = [
    { ...localRoute, upstream: 'a', measure: new RouteMeasure() },
    { ...localRoute, upstream: 'b', measure: new RouteMeasure() },
    { ...localRoute, upstream: 'c', measure: new RouteMeasure() },
  ];
});
afterEach(async () => {
  await pipeline.close();
  if (pipeline.faults.length > 0) throw new Error(pipeline.faults.join('; '));
});

/** Sends a request, and lets the time pass after which a second one is due. */
async function askTwice(instead: Partial<Ports> = {}): Promise<DrivenRequest> {
  const upstreams: Upstreams = {
    call(_call, signal) {
      const call = new HeldCall(signal);
      calls.push(call);
      return call.head;
    },
  };
  const model: OfferedModel = {
    ...usualSettings,
    id: 'small',
    price,
    holdTokens: 100,
    routes,
    hedge: { after: { kind: 'time', ms: afterMs }, budget: 1 },
  };
  const asked = { model: 'small', stream: true, messages: [{ role: 'user', content: 'hello' }] };
  const request = await pipeline.start(keyId, asked, 'chat', {
    upstreams,
    health,
    hedges: new HedgeBudgets(),
    models: { knows: () => true, find: async () => model, list: async () => [model] },
    ...instead,
  });
  pipeline.clock.advance(afterMs);
  await pipeline.quiet();
  return request;
}

const textOf = ({ sent }: DrivenRequest): string => readAnswerBody('chat', true, sent.text).text;

async function resultsOf({ id }: DrivenRequest): Promise<readonly string[]> {
  const made = (await pipeline.store.findRecord(id, null))?.attempts ?? [];
  return made.map(({ upstream, result }) => `${upstream} ${result}`);
}

test('of two texts in the same turn the first one is sent, and the other one is no answer', async () => {
  for (const [winner, results] of [
    [0, ['a ok', 'b hedge_lost']],
    [1, ['a hedge_lost', 'b ok']],
  ] as const) {
    calls = [];
    const request = await askTwice();
    expect(calls).toHaveLength(2);
    for (const call of calls) call.answer();
    await pipeline.quiet();
    for (const at of [winner, 1 - winner]) calls[at]?.say(`from ${at}`);
    await request.done;
    expect(textOf(request)).toBe(`from ${winner}`);
    expect(await resultsOf(request)).toEqual(results);
  }
});

test('a complete answer without text of one request waits for the text of the other, and is not sent', async () => {
  for (const [empty, results] of [
    [1, ['a ok', 'b hedge_lost']],
    [0, ['a hedge_lost', 'b ok']],
  ] as const) {
    calls = [];
    const request = await askTwice();
    for (const call of calls) call.answer();
    calls[empty]?.sayNothing();
    await pipeline.quiet();
    expect(request.sent.text).toBe('');
    calls[1 - empty]?.say(`from ${1 - empty}`);
    await request.done;
    expect(textOf(request)).toBe(`from ${1 - empty}`);
    expect(await resultsOf(request)).toEqual(results);
  }
});

test('a complete answer without text is sent once the other request has failed or has no text, too', async () => {
  for (const [end, results] of [
    [(call?: HeldCall) => call?.play('answers 503'), ['a error', 'b ok']],
    [(call?: HeldCall) => (call?.answer(), call?.sayNothing()), ['a hedge_lost', 'b ok']],
  ] as const) {
    calls = [];
    const request = await askTwice();
    calls[1]?.answer();
    calls[1]?.sayNothing();
    await pipeline.quiet();
    expect(request.sent.text).toBe('');
    end(calls[0]);
    await request.done;
    expect(readAnswerBody('chat', true, request.sent.text)).toMatchObject({ text: '', ending: 'stop' });
    expect(await resultsOf(request)).toEqual(results);
  }
});

test('an answer that was blocked without a text is sent, and not replaced by the text of the other request', async () => {
  const request = await askTwice();
  for (const call of calls) call.answer();
  calls[0]?.block();
  await pipeline.quiet();
  calls[1]?.say('from 1');
  await request.done;
  const ending = { text: '', ending: 'content_filter' };
  expect(readAnswerBody('chat', true, request.sent.text)).toMatchObject(ending);
  expect(await resultsOf(request)).toEqual(['a ok', 'b hedge_lost']);
});

test('a text that the first request refuses is refused, although the second one has a complete answer without text', async () => {
  const request = await askTwice();
  calls[1]?.answer();
  calls[1]?.sayNothing();
  await pipeline.quiet();
  calls[0]?.play('answers 400');
  await request.done;
  expect(await resultsOf(request)).toEqual(['a refused', 'b hedge_lost']);
  expect(request.sent.status).toBe(400);
});

test('an attempt that is stopped before its head does not end the request, although its own end comes first', async () => {
  const request = await askTwice();
  calls[0]?.answer();
  await pipeline.quiet();
  calls[0]?.say('from 0');
  await request.done;
  expect(textOf(request)).toBe('from 0');
  expect(await resultsOf(request)).toEqual(['a ok', 'b hedge_lost']);
});

test('a stopped attempt is in progress no more, and its wait counts as a time to the first text', async () => {
  const request = await askTwice();
  calls[1]?.answer();
  await pipeline.quiet();
  calls[1]?.say('from 1');
  await request.done;
  const nowMs = pipeline.clock.monotonicMs();
  expect(routes.map(({ measure }) => measure?.inFlight)).toEqual([0, 0, 0]);
  expect(routes.map(({ measure }) => measure?.firstTexts(nowMs))).toEqual([1, 1, 0]);
  expect(routes[0]?.measure?.firstTextWithin(1)).toBeGreaterThan(0.9 * afterMs);
});

test('no second request goes to an upstream that is failing', async () => {
  for (const upstream of ['b', 'c'])
    for (let time = 0; time < 5; time++)
      health.began({ upstream, model: 'tiny' }, null).ended('failure', null);
  const request = await askTwice();
  expect(calls).toHaveLength(1);
  calls[0]?.answer();
  calls[0]?.say('from 0');
  await request.done;
  expect(await resultsOf(request)).toEqual(['a ok']);
});

test('if both fail, the next route is tried, and the client gets the most useful of all errors', async () => {
  const request = await askTwice();
  calls[0]?.play('answers 503');
  await pipeline.quiet();
  expect(calls).toHaveLength(2);
  calls[1]?.play('answers 401');
  await pipeline.quiet();
  expect(calls).toHaveLength(3);
  calls[2]?.play('answers 401');
  await request.done;
  expect(await resultsOf(request)).toEqual(['a error', 'b auth', 'c auth']);
  expect(JSON.parse(request.sent.text)).toMatchObject({ error: { code: 'overloaded' } });
});

test('a request has one second request at most', async () => {
  routes = [...routes, { ...localRoute, upstream: 'd', measure: null }];
  const request = await askTwice();
  calls[0]?.play('answers 500');
  calls[1]?.play('answers 500');
  await pipeline.quiet();
  expect(calls).toHaveLength(3);
  pipeline.clock.advance(10 * afterMs);
  await pipeline.quiet();
  expect(calls).toHaveLength(3);
  calls[2]?.answer();
  calls[2]?.say('from 2');
  await request.done;
  expect(await resultsOf(request)).toEqual(['a error', 'b error', 'c ok']);
});

test('a text that the first of the two refuses ends both, as it ends a request without a second one', async () => {
  const request = await askTwice();
  calls[0]?.play('answers 400');
  await request.done;
  expect(calls).toHaveLength(2);
  expect(await resultsOf(request)).toEqual(['a refused', 'b hedge_lost']);
  expect(request.sent.status).toBe(400);
});

test('a text that the second one refuses is refused if the first one fails, too: no third route is tried', async () => {
  for (const [behaviour, result, status] of [
    ['answers 503', 'a error', 400],
    ['answers 400', 'a refused', 400],
  ] as const) {
    calls = [];
    const request = await askTwice();
    calls[1]?.play('answers 400');
    await pipeline.quiet();
    expect(request.sent.text).toBe('');
    calls[0]?.play(behaviour);
    await request.done;
    expect(calls).toHaveLength(2);
    expect(await resultsOf(request)).toEqual([result, 'b refused']);
    expect(request.sent.status).toBe(status);
  }
});

test('the permit of a stopped attempt is released after its call is aborted, with and without its head', async () => {
  for (const hasHead of [false, true]) {
    calls = [];
    const order: string[] = [];
    const limits = limiterSettings({ maxInFlight: 1 });
    const upstreamLimiters = new MemoryUpstreamLimiters(
      pipeline.clock,
      new Map(routes.map(({ upstream }) => [upstream, limits])),
    );
    const tryAcquire = upstreamLimiters.tryAcquire.bind(upstreamLimiters);
    upstreamLimiters.tryAcquire = (asked) => {
      const permit = tryAcquire(asked);
      if (permit === null) return null;
      const release: Permit['release'] = (usage) => {
        order.push('permit released');
        permit.release(usage);
      };
      return {
        ...permit,
        answered: permit.answered.bind(permit),
        releaseUnused: permit.releaseUnused.bind(permit),
        release,
      };
    };
    const request = await askTwice({ upstreamLimiters });
    const [first, second] = calls;
    second?.signal.addEventListener('abort', () => order.push('call aborted'));
    if (hasHead) second?.answer();
    first?.answer();
    await pipeline.quiet();
    first?.say('from 0');
    await request.done;
    expect(await resultsOf(request)).toEqual(['a ok', 'b hedge_lost']);
    expect(order).toEqual(['call aborted', 'permit released']);
  }
});

test('an error of this service in the second request releases the permits of both', async () => {
  const writeRequest = (): never => {
    throw new Error('x');
  };
  routes = routes.map((route) =>
    route.upstream === 'b' ? { ...route, dialect: { ...route.dialect, writeRequest } } : route,
  );
  const limits = limiterSettings({ maxInFlight: 1 });
  const upstreamLimiters = new MemoryUpstreamLimiters(
    pipeline.clock,
    new Map(routes.map(({ upstream }) => [upstream, limits])),
  );
  const request = await askTwice({ upstreamLimiters });
  await request.done;
  expect(pipeline.faults.splice(0)).toEqual(['request failed unexpectedly']);
  expect(request.sent.status).toBe(500);
  expect(upstreamLimiters.views().map(({ inFlight }) => inFlight)).toEqual([0, 0, 0]);
});

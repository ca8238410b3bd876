import fc from 'fast-check';
import { expect, test } from 'vitest';
import { MemoryUpstreamLimiters } from '../../src/coordination/upstream-limiter/memory-upstream-limiters.ts';
import { HedgeBudgets } from '../../src/domain/routing/hedging.ts';
import type {
  BodyPiece,
  UpstreamAnswer,
  UpstreamFault,
  Upstreams,
} from '../../src/domain/ports/upstreams.ts';
import type { OfferedModel } from '../../src/domain/routing.ts';
import { UpstreamHealth } from '../../src/domain/upstreams/upstream-health.ts';
import { bodyOf } from '../support/body-of.ts';
import { readAnswerBody } from '../support/client-answer.ts';
import type { FakeClock } from '../support/fake-clock.ts';
import { modelPrice } from '../support/model-price.ts';
import { localRoute, usualSettings } from '../support/model-source.ts';
import { openPipeline } from '../support/pipeline-harness.ts';
import { propertyRun } from '../support/property-run.ts';
import { limiterSettings } from '../support/limiter-scene.ts';
import { behaviours, good, stale } from '../support/upstream-behaviours.ts';
import type { Behaviour } from '../support/upstream-behaviours.ts';

const price = modelPrice({ input: 1_000_000_000, cachedInput: 1_000_000_000, output: 2_000_000_000 });
/** The cost of the frames' own usage: 11 tokens in, 7 out. */
const wholeCharge = 11 * 1_000 + 7 * 2_000;

/** How far the clock is advanced at a time, in milliseconds: several events fall on one step. */
const stepMs = 10;

/** The most steps of one request: all of its waits together are shorter. */
const maxSteps = 500;

const interrupted: UpstreamFault = { kind: 'fault', fault: 'interrupted' };

/** One call of an upstream, as the upstream sees it. */
interface Call {
  readonly upstream: string;
  readonly startedMs: number;
  /** How many other calls were under way when it began, and whether text had been handed over by one of them. */
  readonly beside: number;
  readonly afterText: boolean;
  /** From the call to the text, or to the end without one; `null` while both are open. */
  textMs: number | null;
  endMs: number | null;
  /** Whether the answer is one that may have text. */
  isGood: boolean;
  isAborted: boolean;
}

/** Plays behaviours with pauses, and keeps what was called. */
class PacedUpstreams implements Upstreams {
  readonly calls: Call[] = [];
  readonly #clock: FakeClock;
  readonly #next: (upstream: string) => Behaviour;
  readonly #pauses: (upstream: string) => Pauses;

  constructor(clock: FakeClock, next: (upstream: string) => Behaviour, pauses: (upstream: string) => Pauses) {
    this.#clock = clock;
    this.#next = next;
    this.#pauses = pauses;
  }

  async call(
    { upstream }: { readonly upstream: string },
    signal: AbortSignal,
  ): Promise<UpstreamAnswer | UpstreamFault> {
    const startedMs = this.#clock.monotonicMs();
    const call: Call = {
      upstream,
      startedMs,
      beside: this.calls.filter(({ endMs }) => endMs === null).length,
      afterText: this.calls.some(({ textMs, isAborted }) => textMs !== null && !isAborted),
      textMs: null,
      endMs: null,
      isGood: false,
      isAborted: false,
    };
    this.calls.push(call);
    const end = (): void => void (call.endMs ??= this.#clock.monotonicMs() - startedMs);
    signal.addEventListener('abort', () => {
      call.isAborted = true;
      end();
    });
    const { headMs, partMs } = this.#pauses(upstream);
    const played = this.#next(upstream).play();
    if (!(await this.#pause(headMs, signal))) return interrupted;
    if (played.kind === 'fault') {
      end();
      return played;
    }
    call.isGood = played.status === 200;
    const read = async (): Promise<BodyPiece> => {
      if (!(await this.#pause(partMs, signal))) return interrupted;
      const piece = await played.read();
      if (!(piece instanceof Uint8Array)) end();
      // The text of a whole body without an end is not used.
      else if (/^data: .*"one "/s.test(Buffer.from(piece).toString()))
        call.textMs ??= this.#clock.monotonicMs() - startedMs;
      return piece;
    };
    return { ...played, ...bodyOf(read), release: end };
  }

  /** Resolves with whether the call goes on. */
  #pause(durationMs: number, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return Promise.resolve(false);
    return new Promise((resolve) => {
      const cancel = this.#clock.schedule(durationMs, () => resolve(true));
      signal.addEventListener('abort', () => {
        cancel();
        resolve(false);
      });
    });
  }
}

interface Pauses {
  readonly headMs: number;
  readonly partMs: number;
}

const steps = (most: number) => fc.integer({ min: 0, max: most / stepMs }).map((count) => count * stepMs);
const upstreamPlan = fc.record({
  name: fc.oneof(fc.constantFrom('good', 'good, in pieces'), fc.constantFrom(...Object.keys(behaviours))),
  isStale: fc.nat(4).map((number) => number === 0),
  headMs: steps(200),
  partMs: steps(100),
});
const plan = fc.record({
  upstreams: fc.tuple(upstreamPlan, upstreamPlan, upstreamPlan),
  firstTextMs: fc.option(fc.constantFrom(50, 100, 200), { nil: undefined }),
  retryWithinMs: fc.option(fc.constantFrom(60, 150), { nil: undefined }),
  afterMs: fc.option(steps(100), { nil: undefined }),
  stream: fc.boolean(),
  isLimited: fc.boolean(),
  protocol: fc.constantFrom('chat' as const, 'responses' as const),
});

/** Upstreams with one permit each, which every attempt has to release. */
const oneAtATime = ['0', '1', '2'].map((upstream) => {
  return [upstream, limiterSettings({ maxInFlight: 1, queue: 10, queueWaitMs: 1_000 })] as const;
});
test('one answer, one charge, and no call after the first text, with second requests and deadlines', async () => {
  const pipeline = await openPipeline(price, 100);
  const { clock } = pipeline;
  const keyId = await pipeline.addKey(1_000_000_000_000);
  const seen = { won: 0, lost: 0, late: 0, whole: 0 };
  let charged = 0;
  const property = fc.asyncProperty(plan, async (planned) => {
    const { firstTextMs, retryWithinMs, afterMs, stream: isStream, protocol } = planned;
    const left = planned.upstreams.map(({ name, isStale }) => [
      ...(isStale ? [stale] : []),
      behaviours[name] ?? good,
    ]);
    const upstreams = new PacedUpstreams(
      clock,
      (upstream) => left[Number(upstream)]?.shift() ?? stale,
      (upstream) => planned.upstreams[Number(upstream)] ?? { headMs: 0, partMs: 0 },
    );
    const limits = {
      ...(firstTextMs === undefined ? {} : { firstTextMs }),
      ...(retryWithinMs === undefined ? {} : { retryWithinMs }),
    };
    const routes = ['0', '1', '2'].map((upstream) => Object.assign({}, localRoute, limits, { upstream }));
    const model: OfferedModel = {
      ...usualSettings,
      id: 'small',
      price,
      holdTokens: 100,
      routes,
      ...(afterMs === undefined ? {} : { hedge: { after: { kind: 'time', ms: afterMs }, budget: 1 } }),
    };
    const asked =
      protocol === 'chat' ? { messages: [{ role: 'user', content: 'hello' }] } : { input: 'hello' };
    const timers = clock.scheduled;
    const upstreamLimiters = new MemoryUpstreamLimiters(clock, new Map(planned.isLimited ? oneAtATime : []));
    const request = await pipeline.start(keyId, { model: 'small', stream: isStream, ...asked }, protocol, {
      upstreams,
      models: { knows: () => true, find: async () => model, list: async () => [model] },
      health: new UpstreamHealth(clock),
      hedges: new HedgeBudgets(),
      upstreamLimiters,
    });
    const state = { isDone: false };
    void request.done.then(() => (state.isDone = true));
    for (let step = 0; !state.isDone && step < maxSteps; step++) {
      clock.advance(stepMs);
      await pipeline.quiet();
    }
    expect(state.isDone).toBe(true);
    const { calls } = upstreams;

    // Calls: one after the other, or two at a time for one second request; none after a text, none left behind.
    const second = calls.filter(({ beside }) => beside > 0);
    expect(calls.length).toBeLessThanOrEqual(4);
    expect(calls.every(({ afterText }) => !afterText)).toBe(true);
    expect(second.length).toBeLessThanOrEqual(afterMs === undefined ? 0 : 1);
    for (const { beside, startedMs } of second) {
      expect(beside).toBe(1);
      const first = calls[calls.findIndex((call) => call.startedMs === startedMs && call.beside > 0) - 1];
      expect(startedMs - (first?.startedMs ?? 0)).toBe(afterMs);
    }
    expect(calls.every(({ endMs }) => endMs !== null)).toBe(true);
    expect(clock.scheduled).toBe(timers);
    expect(upstreamLimiters.views().map(({ inFlight }) => inFlight)).toEqual(
      planned.isLimited ? [0, 0, 0] : [],
    );
    const waitsMs = calls.flatMap(({ isGood, textMs, endMs }) =>
      isGood ? [textMs ?? endMs ?? Infinity] : [],
    );
    expect(Math.max(0, ...waitsMs)).toBeLessThanOrEqual(firstTextMs ?? Infinity);

    // The client: one answer, or one error.
    const answer = readAnswerBody(protocol, isStream && request.sent.status === null, request.sent.text);
    const whole = answer.ending === 'stop';
    expect(whole ? ['one two'] : ['', 'one ']).toContain(answer.text);

    // The record: the calls in their order, one of them answered, and what it cost.
    const record = await pipeline.store.findRecord(request.id, null);
    const made = record?.attempts ?? [];
    expect(made.map(({ upstream }) => upstream)).toEqual(calls.map(({ upstream }) => upstream));
    const answered = made.filter(({ result }) => result === 'ok');
    const lost = made.filter(({ result }) => result === 'hedge_lost');
    expect(answered).toHaveLength(whole ? 1 : 0);
    expect(lost.length).toBeLessThanOrEqual(second.length);
    expect(whole ? [answered[0]?.upstream] : calls.map(({ upstream }) => upstream)).toContain(
      record?.upstream,
    );
    const charge = record?.chargeNanos ?? Number.NaN;
    expect(charge).toBeGreaterThanOrEqual(whole ? wholeCharge : 0);
    expect(charge).toBeLessThanOrEqual(answer.text === '' ? 0 : wholeCharge);
    charged += charge;

    // An attempt that is no second request follows no other one that failed too late.
    const before = calls.flatMap(({ beside }, at) =>
      beside === 0 ? made.slice(0, at).filter(({ result }) => result !== 'hedge_lost') : [],
    );
    expect(Math.max(0, ...before.map(({ durationMs }) => durationMs))).toBeLessThanOrEqual(
      retryWithinMs ?? Infinity,
    );

    seen.won += second.length === 1 && lost.length === 1 && made.at(-1)?.result === 'ok' ? 1 : 0;
    seen.lost += made.at(-1)?.result === 'hedge_lost' ? 1 : 0;
    seen.late += made.some(({ result }) => result === 'timeout') ? 1 : 0;
    seen.whole += whole ? 1 : 0;
  });
  await fc.assert(property, propertyRun(200));
  // A test without these cases would show nothing.
  expect(Math.min(...Object.values(seen))).toBeGreaterThan(0);
  const accounts = await pipeline.store.accounts([keyId]);
  expect(accounts.get(keyId)).toMatchObject({ heldNanos: 0, spentNanos: charged });
  expect(pipeline.faults).toEqual([]);
  await pipeline.close();
});

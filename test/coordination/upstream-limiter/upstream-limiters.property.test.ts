import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { RequestTokens } from '../../../src/domain/ports/upstream-limiters.ts';
import { propertyRun } from '../../support/property-run.ts';
import { openLimiters, permitOf } from '../../support/limiter-scene.ts';
import type { Came, LimiterScene } from '../../support/limiter-scene.ts';

const minuteMs = 60_000;

const settings = {
  slots: { maxInFlight: 2, queue: 6, queueWaitMs: 20_000 },
  starts: { requestsPerMinute: 5, queue: 6, queueWaitMs: 100_000 },
  tokens: { tokensPerMinute: 1_000, maxInFlight: 5, queue: 6, queueWaitMs: 100_000 },
} as const;

type Upstream = keyof typeof settings;

const ways: readonly (readonly Upstream[])[] = [
  ['slots'],
  ['starts'],
  ['tokens'],
  ['slots', 'starts'],
  ['tokens', 'slots'],
  ['starts', 'tokens', 'slots'],
];

const step = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('come' as const),
      key: fc.nat(3),
      way: fc.nat(5),
      size: fc.nat(600),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('leave' as const), which: fc.nat(), quota: fc.nat(100) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('abort' as const), which: fc.nat() }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('pass' as const),
      durationMs: fc.oneof(fc.nat(300), fc.nat(30_000)),
    }),
  },
);
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

/** A request in the history, and when it was at its upstream. */
interface Played {
  readonly came: Came;
  readonly key: string;
  readonly cameMs: number;
  readonly upstreams: readonly Upstream[];
  readonly tokens: RequestTokens;
  startedMs: number | null;
  upstream: Upstream | null;
  endedMs: number | null;
  used: number;
}

/** Plays steps, and keeps a log of its own by which the rules are checked. */
class History {
  readonly scene: LimiterScene = openLimiters(settings);
  readonly played: Played[] = [];

  async play(taken: Step): Promise<void> {
    if (taken.do === 'come') this.#come(taken.key, ways[taken.way] ?? ['slots'], taken.size);
    if (taken.do === 'pass') await this.scene.pass(taken.durationMs);
    if (taken.do === 'abort') this.#pick(this.waiting(), taken.which)?.came.abort.abort();
    if (taken.do === 'leave') this.release(this.#pick(this.running(), taken.which), taken.quota / 100);
    await this.scene.pass(0);
    this.#note();
  }

  release(request: Played | undefined, quota: number): void {
    if (request === undefined) return;
    request.endedMs = this.scene.clock.monotonicMs();
    request.used = Math.floor(quota * (request.tokens.input + request.tokens.output));
    permitOf(request.came).release({ input: request.used, output: 0 });
  }

  waiting(): readonly Played[] {
    return this.played.filter(({ came }) => came.result === null);
  }

  running(upstream: Upstream | null = null): readonly Played[] {
    return this.played.filter(
      (request) =>
        request.startedMs !== null &&
        request.endedMs === null &&
        (upstream === null || request.upstream === upstream),
    );
  }

  /** What counts towards a limit now, by the log alone. */
  startsOf(upstream: Upstream, withinMs: number): number {
    const sinceMs = this.scene.clock.monotonicMs() - withinMs;
    return this.played.filter(
      (request) => request.upstream === upstream && request.startedMs !== null && request.startedMs > sinceMs,
    ).length;
  }

  tokensOf(upstream: Upstream, withinMs: number): number {
    const sinceMs = this.scene.clock.monotonicMs() - withinMs;
    let tokens = 0;
    for (const request of this.played) {
      if (request.upstream !== upstream) continue;
      if (request.endedMs === null) tokens += request.tokens.input + request.tokens.output;
      else if (request.endedMs > sinceMs) tokens += request.used;
    }
    return tokens;
  }

  #come(key: number, upstreams: readonly Upstream[], size: number): void {
    const id = `${'abcd'[key] ?? 'a'}${this.played.length}`;
    const tokens = { input: size, output: Math.floor(size / 2) };
    const came = this.scene.come(id, { upstreams, tokens, weight: 1 + (key % 2) });
    this.played.push({
      came,
      key: id.slice(0, 1),
      cameMs: this.scene.clock.monotonicMs(),
      upstreams,
      tokens,
      startedMs: null,
      upstream: null,
      endedMs: null,
      used: 0,
    });
  }

  /** Notes the starts since the last step, which may have happened at any moment of it. */
  #note(): void {
    for (const request of this.played) {
      const { result } = request.came;
      if (request.startedMs !== null || result?.kind !== 'acquired') continue;
      request.upstream = result.permit.upstream as Upstream;
      request.startedMs = request.cameMs + result.waitedMs;
    }
  }

  #pick(from: readonly Played[], which: number): Played | undefined {
    return from[which % Math.max(1, from.length)];
  }
}

/** What is wrong now; empty if nothing is. */
function faultsOf(history: History): readonly string[] {
  const faults: string[] = [];
  const slots = history.running('slots').length;
  const starts = history.startsOf('starts', minuteMs);
  if (slots > 2) faults.push(`${slots} of 2 slots`);
  if (history.running('tokens').length > 5) faults.push('more than 5 slots with tokens');
  if (starts > 5) faults.push(`${starts} of 5 starts`);
  for (const { upstreams } of history.waiting()) {
    if (upstreams.includes('slots') && slots < 2) faults.push('a request waits beside a free slot');
    // A minute and the jitter are over at the latest: what remains counts.
    if (upstreams.includes('starts') && history.startsOf('starts', minuteMs + 1_001) < 5)
      faults.push('a request waits beside a free start');
  }
  const running = history.running('tokens');
  const largest = Math.max(0, ...running.map(({ tokens }) => tokens.input + tokens.output));
  if (history.tokensOf('tokens', minuteMs) > Math.max(1_000, largest)) faults.push('too many tokens');
  faults.push(...overtaken(history));
  return faults;
}

/** Requests of one key and the same upstreams start in the order in which they came. */
function overtaken({ played }: History): readonly string[] {
  return played.flatMap((earlier, at) =>
    earlier.came.result === null
      ? played
          .slice(at + 1)
          .filter(
            ({ key, upstreams, startedMs }) =>
              key === earlier.key && upstreams === earlier.upstreams && startedMs !== null,
          )
          .map(({ came }) => `${came.id} overtook ${earlier.came.id}`)
      : [],
  );
}

test('no history exceeds a limit, leaves a free permit unused, or has a request overtake another one of its key', async () => {
  let waits = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 80 }), async (steps) => {
      const history = new History();
      for (const taken of steps) {
        await history.play(taken);
        expect(faultsOf(history)).toEqual([]);
        waits += history.waiting().length;
      }
    }),
    propertyRun(150),
  );
  // What never happens is not tested.
  expect(waits).toBeGreaterThan(100);
});

test('every wait ends, and nothing is left behind', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 80 }), async (steps) => {
      const history = new History();
      for (const taken of steps) await history.play(taken);
      for (let round = 0; history.waiting().length + history.running().length > 0; round++) {
        expect(round).toBeLessThan(200);
        for (const request of history.running()) history.release(request, 0.5);
        await history.play({ do: 'pass', durationMs: 5_000 });
      }
      expect(history.scene.clock.scheduled).toBe(0);
      expect(history.scene.limiters.views()).toMatchObject([
        { waiting: 0, inFlight: 0 },
        { waiting: 0, inFlight: 0 },
        { waiting: 0, inFlight: 0 },
      ]);
      for (const { came } of history.played) expect(history.scene.limiters.waiting(came.id)).toBeNull();
    }),
    propertyRun(100),
  );
});

test('keys that wait all the time differ by no more than one request, by their weights', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 2, maxLength: 5 }),
      fc.integer({ min: 5, max: 60 }),
      async (weights, turns) => {
        const { come, pass, acquired } = openLimiters({ far: { maxInFlight: 1, queue: 1_000 } });
        const running = new Map<string, Came>();
        let next = permitOf(come('x'));
        for (const [key, weight] of weights.entries())
          for (let number = 0; number < turns; number++) {
            const id = `${'abcde'[key] ?? 'e'}${number}`;
            running.set(id, come(id, { weight }));
          }
        for (let turn = 1; turn <= turns; turn++) {
          next.release(null);
          await pass(1);
          next = permitOf(running.get(acquired[turn] ?? '') as Came);
        }
        const quotas = weights.map((weight, key) => ({
          weight,
          served: acquired.slice(1).filter((id) => id.startsWith('abcde'[key] ?? 'e')).length / weight,
        }));
        for (const one of quotas)
          for (const other of quotas)
            expect(Math.abs(one.served - other.served)).toBeLessThanOrEqual(
              1 / one.weight + 1 / other.weight + 1e-9,
            );
      },
    ),
    propertyRun(40),
  );
});

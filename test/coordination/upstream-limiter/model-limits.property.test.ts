import fc from 'fast-check';
import { expect, test } from 'vitest';
import { at, limitSettings, openLimiters, permitOf, limiterSettings } from '../../support/limiter-scene.ts';
import type { Came, LimiterScene } from '../../support/limiter-scene.ts';
import { propertyRun } from '../../support/property-run.ts';

const keys = ['a', 'b', 'c', 'd'] as const;

/** The models of the upstream, with the most requests of each at a time. */
const permits = new Map<string, number>([
  ['one', 1],
  ['two', 2],
  ['any', Number.POSITIVE_INFINITY],
  ['other', Number.POSITIVE_INFINITY],
]);
const models = [...permits.keys()];

/** The models for one of which a request waits. */
const wanted = [...models.map((model) => [model]), ['one', 'any'], ['two', 'other']];
const placesOfAll = 3;

/** Two keys that wait all the time differ by no more than this, in requests: one that is paid for later, and the one in turn. */
const leastFair = 2;

/** What happens: requests come, end, and are refused with a pause of their model. */
const step = fc.record({
  do: fc.constantFrom('come', 'come', 'come', 'leave', 'leave', 'leave', 'pause', 'pass'),
  key: fc.nat(keys.length - 1),
  way: fc.nat(wanted.length - 1),
  which: fc.nat(),
  ms: fc.integer({ min: 1, max: 20_000 }),
});
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

interface Played {
  readonly came: Came;
  readonly key: string;
  readonly models: readonly string[];
  /** The model for which it started; `null` as long as it waits. */
  model: string | null;
  isOver: boolean;
}

class History {
  readonly scene: LimiterScene = openLimiters({
    far: limiterSettings({
      maxInFlight: placesOfAll,
      queue: 1_000,
      queueWaitMs: 100_000_000,
      models: new Map([
        ['one', limitSettings({ maxInFlight: 1, queue: 1_000, queueWaitMs: 100_000_000 })],
        ['two', limitSettings({ maxInFlight: 2, queue: 1_000, queueWaitMs: 100_000_000 })],
      ]),
    }),
  });
  readonly played: Played[] = [];
  /** How much more one key was served than another one, since when both could be. */
  readonly #leads = new Map<string, number>();
  readonly faults: string[] = [];

  waiting(): readonly Played[] {
    return this.played.filter(({ model }) => model === null);
  }

  running(): readonly Played[] {
    return this.played.filter(({ model, isOver }) => model !== null && !isOver);
  }

  async play({ do: what, key, way, which, ms }: Step): Promise<void> {
    const before = this.#served();
    const able = this.#able();
    const running = this.running();
    const picked = running[which % Math.max(1, running.length)];
    if (what === 'come') this.#come(keys[key] ?? 'a', wanted[way] ?? ['any']);
    if (what === 'leave') this.#release(picked, null);
    if (what === 'pause') this.#release(picked, ms);
    if (what === 'pass') await this.scene.pass(ms);
    await this.scene.pass(0);
    this.#note();
    this.#judge(able, before);
  }

  #come(key: string, asked: readonly string[]): void {
    const targets = asked.map((model) => at('far', model));
    const came = this.scene.come(`${key}${this.played.length}`, { targets });
    this.played.push({ came, key, models: asked, model: null, isOver: false });
  }

  #release(request: Played | undefined, pauseMs: number | null): void {
    if (request === undefined) return;
    request.isOver = true;
    const permit = permitOf(request.came);
    if (pauseMs !== null) permit.answered(429, pauseMs, null);
    permit.release(null);
  }

  #note(): void {
    for (const request of this.waiting()) {
      const { result } = request.came;
      if (result?.kind !== 'acquired') continue;
      request.model = result.permit.model;
      for (const earlier of this.waiting()) {
        const isOvertaken = earlier.key === request.key && earlier.models.join() === request.models.join();
        if (
          isOvertaken &&
          this.played.indexOf(earlier) < this.played.indexOf(request) &&
          earlier.came.result === null
        )
          this.faults.push(`${request.came.id} overtook ${earlier.came.id}`);
      }
    }
  }

  /** Whether a model could take one more request, by what was sent to it. */
  #isOpen(model: string): boolean {
    const inFlight = this.running().filter((request) => request.model === model).length;
    return inFlight < (permits.get(model) ?? 0) && this.scene.limiters.pausedMs(at('far', model)) === 0;
  }

  /** The keys that wait for a model that could take one more request. */
  #able(): ReadonlySet<string> {
    return new Set(
      this.waiting()
        .filter((request) => request.models.some((model) => this.#isOpen(model)))
        .map(({ key }) => key),
    );
  }

  #served(): ReadonlyMap<string, number> {
    const started = this.played.filter(({ model }) => model !== null);
    return new Map(keys.map((key) => [key, started.filter((request) => request.key === key).length]));
  }

  #judge(ableBefore: ReadonlySet<string>, before: ReadonlyMap<string, number>): void {
    const running = this.running();
    for (const [model, most] of permits)
      if (running.filter((request) => request.model === model).length > most)
        this.faults.push(`too many of ${model}`);
    if (running.length > placesOfAll) this.faults.push('too many of all');
    const able = this.#able();
    if (running.length < placesOfAll && able.size > 0)
      this.faults.push(`${[...able].join()} wait beside a free permit`);
    const after = this.#served();
    const gained = (key: string): number => (after.get(key) ?? 0) - (before.get(key) ?? 0);
    for (const one of keys)
      for (const other of keys) {
        if (one === other) continue;
        const pair = `${one} before ${other}`;
        const areAble = [one, other].every((key) => able.has(key) && ableBefore.has(key));
        const lead = areAble ? (this.#leads.get(pair) ?? 0) + gained(one) - gained(other) : 0;
        this.#leads.set(pair, lead);
        if (lead > leastFair) this.faults.push(`${pair} by ${lead}`);
      }
  }
}

test('no history exceeds a limit, leaves a free permit unused, or serves a key before others because it was held', async () => {
  let held = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 40, maxLength: 160 }), async (steps) => {
      const history = new History();
      for (const taken of steps) {
        await history.play(taken);
        expect(history.faults).toEqual([]);
        if (history.running().length < placesOfAll) held += history.waiting().length;
      }
      // Once all pauses are over, all that wait get their turn.
      for (let left = history.played.length; left > 0; left--) {
        await history.play({ do: 'pass', key: 0, way: 0, which: 0, ms: 20_000 });
        await history.play({ do: 'leave', key: 0, way: 0, which: 0, ms: 0 });
      }
      expect(history.waiting()).toEqual([]);
      expect(history.faults).toEqual([]);
      expect(history.scene.limiters.views()).toMatchObject([{ inFlight: 0, waiting: 0 }]);
    }),
    propertyRun(150),
  );
  // Without requests that wait beside free permits none was passed over.
  expect(held).toBeGreaterThan(1_000);
});

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { groupIdOf } from '../../src/domain/limits/groups.ts';
import type { Group } from '../../src/domain/limits/groups.ts';
import type { UpstreamAnswer } from '../../src/domain/ports/upstreams.ts';
import type { Ports } from '../../src/pipeline/ports.ts';
import { expectAtMost, expectEqual } from '../support/assertions.ts';
import { bodyOf } from '../support/body-of.ts';
import { modelPrice } from '../support/model-price.ts';
import { openPipeline } from '../support/pipeline-harness.ts';
import type { DrivenRequest, PipelineHarness } from '../support/pipeline-harness.ts';
import { propertyRun } from '../support/property-run.ts';
import { chatFrames } from '../support/scripted-upstream.ts';

const body = { model: 'm', messages: [{ role: 'user', content: 'x' }] };
const queueWaitMs = 10_000;
const keyConcurrency = 2;
const which = fc.nat(30);

const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('start' as const), key: fc.nat(2) }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constantFrom('end' as const, 'leave' as const), which }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('pass' as const), ms: fc.integer({ min: 1, max: 12_000 }) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('move' as const), key: fc.nat(2) }) },
);

const history = fc.record({
  /** The slots of two groups; `null` for any number. */
  slots: fc.tuple(fc.option(fc.integer({ min: 1, max: 3 })), fc.option(fc.integer({ min: 1, max: 3 }))),
  /** Which keys wait for a slot. */
  waits: fc.tuple(fc.boolean(), fc.boolean(), fc.boolean()),
  steps: fc.array(step, { maxLength: 25, size: 'max' }),
});

type History = typeof history extends fc.Arbitrary<infer Value> ? Value : never;

/** A request, and the upstream's side of it. */
interface Asked {
  readonly driven: DrivenRequest;
  readonly key: number;
  /** Has the upstream answer. */
  readonly answer: () => void;
  /** The group under which it is sent upstream; `null` before. */
  readonly sentIn: () => string | null;
  isDone: boolean;
}

/** A whole answer, which comes once it is told to. */
function answerLater(told: Promise<void>, signal: AbortSignal): UpstreamAnswer {
  const interrupted = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
  let isGiven = false;
  return {
    kind: 'answer',
    status: 200,
    contentType: 'text/event-stream',
    retryAfterMs: null,
    ...bodyOf(async () => {
      await Promise.race([told, interrupted]);
      if (signal.aborted) return { kind: 'fault', fault: 'interrupted' };
      if (isGiven) return null;
      isGiven = true;
      return Buffer.from(chatFrames(['x']).join(''));
    }),
    release: () => {},
  };
}

class PlayedHistory {
  readonly #pipeline: PipelineHarness;
  readonly #made: History;
  readonly #groups: ReadonlyMap<string, Group>;
  readonly #asked: Asked[] = [];
  #keys: string[] = [];
  /** The group of each key. */
  readonly #groupOf = ['a', 'a', 'b'];

  constructor(pipeline: PipelineHarness, made: History) {
    this.#pipeline = pipeline;
    this.#made = made;
    this.#groups = new Map(
      ['a', 'b'].map((name, at) => [
        name,
        { id: groupIdOf(name), name, concurrency: made.slots[at] ?? null, budget: null },
      ]),
    );
  }

  async play(): Promise<void> {
    const { waits, steps } = this.#made;
    for (const [at, waitsForSlot] of waits.entries()) {
      const id = await this.#pipeline.addKey(null);
      this.#keys.push(id);
      const limits = { concurrency: keyConcurrency, queueWaitMs: waitsForSlot ? queueWaitMs : 0 };
      this.#pipeline.change(id, { limits, group: this.#groupOf[at] ?? null });
    }
    for (const made of steps) {
      if (made.kind === 'start') await this.#start(made.key);
      else if (made.kind === 'pass') this.#pipeline.clock.advance(made.ms);
      else if (made.kind === 'move') this.#move(made.key);
      else this.#end(made.kind, made.which);
      await this.#pipeline.quiet();
      this.#check();
    }
    for (const { answer } of this.#asked) answer();
    await Promise.all(this.#asked.map(({ driven }) => driven.done));
    await this.#checkFree();
  }

  async #start(key: number): Promise<void> {
    const told = Promise.withResolvers<void>();
    let sentIn: string | null = null;
    const instead: Partial<Ports> = {
      groups: () => this.#groups,
      upstreams: {
        call: async ({ onSent }, signal) => {
          onSent?.();
          sentIn = this.#groupOf[key] ?? null;
          return answerLater(told.promise, signal);
        },
      },
    };
    const driven = await this.#pipeline.start(this.#keys[key] ?? '', body, 'chat', instead);
    const asked: Asked = { driven, key, answer: told.resolve, sentIn: () => sentIn, isDone: false };
    this.#asked.push(asked);
    void driven.done.then(() => (asked.isDone = true));
  }

  #end(how: 'end' | 'leave', at: number): void {
    const open = this.#asked.filter(({ isDone }) => !isDone);
    const asked = open[at % open.length];
    if (how === 'end') asked?.answer();
    else asked?.driven.leave();
  }

  #move(key: number): void {
    const group = this.#groupOf[key] === 'a' ? 'b' : 'a';
    this.#groupOf[key] = group;
    this.#pipeline.change(this.#keys[key] ?? '', { group });
  }

  #check(): void {
    const running = this.#asked.filter(({ isDone, sentIn }) => !isDone && sentIn() !== null);
    for (const { name, concurrency } of this.#groups.values())
      expectAtMost(
        running.filter(({ sentIn }) => sentIn() === name).length,
        concurrency ?? Number.POSITIVE_INFINITY,
      );
    for (const key of this.#keys.keys())
      expectAtMost(running.filter((asked) => asked.key === key).length, keyConcurrency);
  }

  /** Checks that all slots of the groups and keys can be had, when everything has ended. */
  async #checkFree(): Promise<void> {
    const { limiter } = this.#pipeline.ports;
    const { signal } = new AbortController();
    const ids = [...this.#keys, ...[...this.#groups.values()].map(({ id }) => id)];
    for (const id of ids) {
      const limits = { concurrency: 1, requestsPerMinute: 1_000, queueWaitMs: 0 };
      expectEqual(
        [id, (await limiter.acquire(id, `last of ${id}`, limits, signal)).verdict],
        [id, 'granted'],
      );
    }
  }
}

test('no more requests of a group run than it has slots, and all slots are free in the end, however requests wait, leave and move', async () => {
  await fc.assert(
    fc.asyncProperty(history, async (made) => {
      const pipeline = await openPipeline(modelPrice({ input: 1 }), 100);
      try {
        await new PlayedHistory(pipeline, made).play();
        expect(pipeline.ports.inFlight.all()).toEqual([]);
      } finally {
        await pipeline.close();
      }
    }),
    propertyRun(40),
  );
});

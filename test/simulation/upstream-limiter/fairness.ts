import type { LimiterSettings } from '../../../src/domain/ports/upstream-limiters.ts';
import { LimitersScene } from './scene.ts';
import type { Sent } from './scene.ts';
import { SimulatedUpstream } from './upstream.ts';

/** The requests that an upstream takes at a time, and the mean time that one takes there, in milliseconds. */
const slots = 4;
const meanMs = 2_000;

/** The time in which requests come where they do not come at one instant, in milliseconds. */
const earlyMs = 40_000;

/** How many requests the greedy key has, and how many keys have one each. */
const greedyRequests = 100;
const others = 9;

/**
 * How requests come. `full`: all at one instant, in any order, while the upstream works on four of another key. `greedy
 * first`: the same, but those of the greedy key come first. `empty`: all at one instant, in any order, to an idle upstream.
 * `spread`: those of the nine at any moment while the greedy key's are served. `closed`: the nine send the next request
 * as soon as they have an answer, ten each, and the greedy key always has a hundred.
 */
export type Arrival = 'full' | 'greedy first' | 'empty' | 'spread' | 'closed';

export const arrivals: readonly Arrival[] = ['full', 'greedy first', 'empty', 'spread', 'closed'];

/** Who is served next: keys in turn, or the oldest request; without a queue all are refused for which no permit is free. */
export type Policy = 'fair' | 'age' | 'none';

export interface FairnessResult {
  /** Mean waits in milliseconds of those that were answered; `NaN` without any. */
  readonly greedyMs: number;
  readonly othersMs: number;
  /** The share of the permits that is used as long as some wait. */
  readonly utilisation: number;
  /** The share of the permits that is used in the first 40 s, in which the requests come. */
  readonly usedEarly: number;
  /** The share of the requests of the nine that were refused. */
  readonly refusedOthers: number;
  readonly refusedGreedy: number;
  /** Pairs of requests of one key of which the later one entered first. */
  readonly overtaken: number;
  readonly othersWaits: readonly number[];
}

function settingsOf(policy: Policy): LimiterSettings {
  return {
    maxInFlight: slots,
    requestsPerMinute: null,
    tokensPerMinute: null,
    learnLimits: false,
    queue: policy === 'none' ? 0 : 1_000,
    queueWaitMs: 10_000_000,
    models: new Map(),
  };
}

class Play {
  readonly scene: LimitersScene;
  readonly sent: (Sent & { readonly number: number })[] = [];
  readonly #upstream: SimulatedUpstream;
  readonly #policy: Policy;
  #number = 0;
  #pending = 0;
  /** Requests that wait, or are in progress. */
  #asking = 0;
  #busyMs = 0;
  #queuedMs = 0;
  #earlyMs = 0;

  constructor(seed: number, policy: Policy) {
    this.#policy = policy;
    this.#upstream = new SimulatedUpstream({ slots, family: 'none', tokenCount: 'at the end', clockMs: 0 });
    this.scene = new LimitersScene({
      seed,
      upstreams: { far: this.#upstream },
      settings: { far: settingsOf(policy) },
      jitterMs: 0,
    });
  }

  /** Sends a request after a delay; it is waited for from now on. */
  async send(keyId: string, delayMs = 0): Promise<void> {
    const { scene } = this;
    this.#pending++;
    if (delayMs > 0) await scene.sleep(delayMs);
    const totalMs = -Math.log(1 - scene.random()) * meanMs;
    const number = this.#number++;
    this.#asking++;
    const sent = await scene.send({
      keyId,
      fairKeyId: this.#policy === 'age' ? 'all' : keyId,
      upstreams: ['far'],
      expected: { input: 1, output: 1 },
      call: { input: 1, outputCap: 1, output: 1, headMs: totalMs / 2, totalMs },
    });
    this.#pending--;
    this.#asking--;
    this.sent.push({ ...sent, number });
  }

  /** Sends requests one after the other. */
  async repeat(keyId: string, times: number): Promise<void> {
    for (let count = 0; count < times; count++) await this.send(keyId);
  }

  /** Runs until all is answered, and adds up how many permits are used while some wait. */
  async run(): Promise<void> {
    let beforeMs = 0;
    let inFlight = 0;
    let isQueue = false;
    await this.scene.time.run(() => {
      const { nowMs } = this.scene.time;
      if (isQueue) this.#queuedMs += nowMs - beforeMs;
      if (isQueue) this.#busyMs += (nowMs - beforeMs) * inFlight;
      this.#earlyMs += Math.max(0, Math.min(earlyMs, nowMs) - beforeMs) * inFlight;
      beforeMs = nowMs;
      inFlight = this.#upstream.inFlight;
      isQueue = this.#asking > inFlight;
      return this.#pending === 0 && nowMs > 0;
    });
  }

  result(): FairnessResult {
    const answered = this.sent.filter(({ result, keyId }) => result === 'answered' && keyId !== 'running');
    const waitsOf = (isGreedy: boolean): readonly number[] =>
      answered.filter(({ keyId }) => (keyId === 'greedy') === isGreedy).map(({ waitedMs }) => waitedMs);
    const refused = (isGreedy: boolean): number => {
      const all = this.sent.filter(({ keyId }) => keyId !== 'running' && (keyId === 'greedy') === isGreedy);
      return all.filter(({ result }) => result !== 'answered').length / Math.max(1, all.length);
    };
    return {
      greedyMs: mean(waitsOf(true)),
      othersMs: mean(waitsOf(false)),
      utilisation: this.#queuedMs === 0 ? 1 : this.#busyMs / (this.#queuedMs * slots),
      usedEarly: this.#earlyMs / (earlyMs * slots),
      refusedOthers: refused(false),
      refusedGreedy: refused(true),
      overtaken: overtakenPairs(this.sent),
      othersWaits: waitsOf(false),
    };
  }
}

/** One greedy key beside nine, or ten equal keys if it is `null`: then the tenth is as the nine are. */
export async function playFairness(
  seed: number,
  arrival: Arrival,
  policy: Policy,
  greedy: 'greedy' | null,
): Promise<FairnessResult> {
  const play = new Play(seed, policy);
  const { scene } = play;
  const keys = Array.from({ length: others + (greedy === null ? 1 : 0) }, (_, number) => `key${number}`);
  if (arrival !== 'empty') for (let number = 0; number < slots; number++) void play.send('running');
  const burst = greedy === null ? [] : Array.from({ length: greedyRequests }, () => greedy);
  if (arrival === 'closed')
    for (const keyId of [...burst, ...keys]) void play.repeat(keyId, keyId === greedy ? 5 : 10);
  else if (arrival === 'spread') {
    for (const keyId of burst) void play.send(keyId);
    for (const keyId of keys) void play.send(keyId, greedy === null ? 0 : scene.random() * earlyMs);
  } else {
    const all = [...burst, ...keys];
    for (const keyId of arrival === 'greedy first' ? all : shuffled(all, scene.random)) void play.send(keyId);
  }
  await play.run();
  return play.result();
}

export function mean(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
}

function shuffled<Item>(items: readonly Item[], random: () => number): readonly Item[] {
  return items
    .map((item) => ({ item, at: random() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ item }) => item);
}

/** Pairs of neighbours of one key that entered in the wrong order: both came at known moments, and waited. */
function overtakenPairs(sent: readonly (Sent & { readonly number: number })[]): number {
  const latest = new Map<string, number>();
  let pairs = 0;
  for (const { keyId, cameMs, waitedMs, result } of sent.toSorted((a, b) => a.number - b.number)) {
    if (result !== 'answered') continue;
    const acquiredMs = cameMs + waitedMs;
    if (acquiredMs < (latest.get(keyId) ?? 0)) pairs++;
    latest.set(keyId, Math.max(acquiredMs, latest.get(keyId) ?? 0));
  }
  return pairs;
}

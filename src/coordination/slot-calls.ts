import { maxWaitingRequests } from '../domain/limits/limits.ts';
import type { LimitDecision, Limits } from '../domain/limits/limits.ts';
import type { Acquired } from '../domain/ports/limiter.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { SlotRequest, SlotStore } from '../domain/ports/slot-store.ts';

/** How often the keys without requests are forgotten, in milliseconds. */
const forgetMs = 60_000;

/** A request whose call of the store waits for the answer to another one. */
interface QueuedCall extends PromiseWithResolvers<Acquired | 'waiting'> {
  readonly request: SlotRequest;
}

/** What this process knows of a key. */
interface KeyKnowledge {
  /** The slots that this process has. */
  held: number;
  /** The requests of this process that wait for a slot. */
  waiting: number;
  /** The slots that other processes had at the last decision. */
  heldByOthers: number;
  /** The last decision, the limits that it was made for, and when it was asked for. */
  last: { readonly decision: LimitDecision; readonly limits: Limits; readonly askedMs: number } | null;
  /** The calls that wait while another one is under way: there are some only after a refusal. */
  queued: QueuedCall[];
  underWay: number;
}

/**
 * Asks the store for slots, and answers for it where it can only refuse: when this process itself has all slots of a key,
 * and when all starts are used, until the next one is given back. After a refusal one call for a key is under way at a time;
 * those that came before it was sent share its refusal. So a client that is refused and goes on asking costs a store one
 * call for each round trip, and usually none at all.
 */
export class SlotCalls {
  readonly #store: SlotStore;
  readonly #clock: Clock;
  readonly #keys = new Map<string, KeyKnowledge>();
  #cancelForget: () => void;

  constructor(store: SlotStore, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
    this.#cancelForget = clock.schedule(forgetMs, () => this.#forgetIdle());
  }

  /** Resolves with the store's decision, or with a refusal that it would give; rejects when the store fails. */
  take(request: SlotRequest): Promise<Acquired | 'waiting'> {
    const key = this.#of(request.keyId);
    const refusal = refusalOf(key, request, this.#clock.monotonicMs());
    if (refusal !== null) return Promise.resolve(refusal);
    const hasRefused = wasRefused(key);
    // A record that is begun is undone where there is no slot, with two writes of its account: not where that is likely.
    const isLikely = hasRefused || key.held + key.underWay >= request.limits.concurrency;
    const asked = isLikely ? { ...request, opening: null } : request;
    if (key.underWay === 0 || !hasRefused) return this.#send(key, asked, []);
    const queued = { request: asked, ...Promise.withResolvers<Acquired | 'waiting'>() };
    key.queued.push(queued);
    return queued.promise;
  }

  /** The refusal that `take` would give without asking the store to a request that does not wait; `null` if it would ask. */
  knownRefusal(keyId: string, limits: Limits): LimitDecision | null {
    const key = this.#keys.get(keyId);
    return key === undefined ? null : refusalOf(key, { limits, mayWait: false }, this.#clock.monotonicMs());
  }

  /** A request of this process waits no longer; it may have got a slot. */
  waitEnded(keyId: string, hasSlot: boolean): void {
    const key = this.#of(keyId);
    key.waiting = Math.max(0, key.waiting - 1);
    if (hasSlot) key.held++;
  }

  /** A request of this process gives its slot back. */
  released(keyId: string): void {
    const key = this.#of(keyId);
    key.held = Math.max(0, key.held - 1);
  }

  close(): void {
    this.#cancelForget();
  }

  #of(keyId: string): KeyKnowledge {
    let key = this.#keys.get(keyId);
    if (key === undefined) {
      key = { held: 0, waiting: 0, heldByOthers: 0, last: null, queued: [], underWay: 0 };
      this.#keys.set(keyId, key);
    }
    return key;
  }

  /** Sends a call; `companions` were there before it is sent and share its refusal. */
  async #send(
    key: KeyKnowledge,
    request: SlotRequest,
    companions: readonly QueuedCall[],
  ): Promise<Acquired | 'waiting'> {
    key.underWay++;
    const askedMs = this.#clock.monotonicMs();
    try {
      const answer = await this.#store.take(request);
      this.#learn(key, request, answer, askedMs);
      if (answer === 'waiting' || answer.verdict === 'granted') this.#sendAgain(key, companions);
      else for (const { resolve } of companions) resolve(answer);
      return answer;
    } catch (error) {
      for (const { reject } of companions) reject(error);
      throw error;
    } finally {
      key.underWay--;
      this.#sendQueued(key);
    }
  }

  /** Asks for each of some requests: one of them was granted a slot, so there may be more. */
  #sendAgain(key: KeyKnowledge, calls: readonly QueuedCall[]): void {
    for (const { request, resolve, reject } of calls) this.#send(key, request, []).then(resolve, reject);
  }

  /** Sends the first of the queued calls, when no other one is under way; those with the same limits share its refusal. */
  #sendQueued(key: KeyKnowledge): void {
    if (key.underWay > 0) return;
    const [first, ...others] = key.queued;
    if (first === undefined) return;
    const { limits, mayWait } = first.request;
    const isAlike = ({ request }: QueuedCall): boolean =>
      request.mayWait === mayWait && isSameLimit(request.limits, limits);
    key.queued = others.filter((take) => !isAlike(take));
    this.#send(key, first.request, others.filter(isAlike)).then(first.resolve, first.reject);
  }

  /** What it says of time counts from when it was asked for: its answer may have been on its way for long. */
  #learn(
    key: KeyKnowledge,
    { limits }: SlotRequest,
    answer: LimitDecision | 'waiting',
    askedMs: number,
  ): void {
    if (answer === 'waiting') {
      key.waiting++;
      return;
    }
    if (answer.verdict === 'granted') key.held++;
    key.heldByOthers = Math.max(0, answer.inFlight - key.held);
    key.last = { decision: answer, limits, askedMs };
  }

  /** Keys without a slot, whose last decision says nothing any more. */
  #forgetIdle(): void {
    const nowMs = this.#clock.monotonicMs();
    for (const [keyId, { held, waiting, underWay, queued, last }] of this.#keys) {
      const isKnown = last !== null && nowMs < last.askedMs + last.decision.resetMs;
      if (held + waiting + underWay === 0 && queued.length === 0 && !isKnown) this.#keys.delete(keyId);
    }
    this.#cancelForget = this.#clock.schedule(forgetMs, () => this.#forgetIdle());
  }
}

function wasRefused({ last }: KeyKnowledge): boolean {
  return last !== null && last.decision.verdict !== 'granted';
}

function isSameLimit(a: Limits, b: Limits): boolean {
  return a.concurrency === b.concurrency && a.requestsPerMinute === b.requestsPerMinute;
}

/** The refusal that the store would give for sure; `null` when it has to be asked. */
function refusalOf(
  { held, waiting, heldByOthers, last }: KeyKnowledge,
  { limits, mayWait }: Pick<SlotRequest, 'limits' | 'mayWait'>,
  nowMs: number,
): LimitDecision | null {
  // A start that is given back changes what a refusal says, and may make it none.
  if (last === null || nowMs >= last.askedMs + last.decision.resetMs) return null;
  if (last.limits.requestsPerMinute !== limits.requestsPerMinute) return null;
  const { decision, askedMs } = last;
  const said = {
    inFlight: held + heldByOthers,
    remainingStarts: decision.remainingStarts,
    resetMs: askedMs + decision.resetMs - nowMs,
  };
  // All of the queue is of this process: it is full until one of these waits ends.
  if (mayWait) return waiting < maxWaitingRequests ? null : { verdict: 'concurrency', ...said };
  if (held >= limits.concurrency) return { verdict: 'concurrency', ...said };
  return decision.verdict === 'rate' ? { verdict: 'rate', ...said } : null;
}

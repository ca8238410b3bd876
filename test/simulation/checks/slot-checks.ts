import type { LimitDecision } from '../../../src/domain/limits/limits.ts';
import type { Counts } from '../counts.ts';
import type { MemoryDatabase } from '../database/memory-database.ts';
import type { GatewayProcess } from '../gateway-process.ts';
import type { PlannedKey } from '../plan.ts';
import { Violation } from '../violation.ts';
import type { VirtualTime } from '../virtual-time.ts';

/** The window in which starts are counted, in milliseconds: written out, not taken from the source. */
const windowMs = 60_000;

/** What is true of a key. */
interface KeyTruth {
  readonly limits: PlannedKey['limits'];
  /** The requests that run with a slot of it, on all nodes. */
  readonly running: Map<string, { readonly process: GatewayProcess; readonly owner: string }>;
  /** When slots were granted, in the time of the database. */
  readonly starts: number[];
  isFull: boolean;
  /** The last event at which all slots were taken, or requests waited. */
  lastFull: number;
}

/** The slots and the queues as they were before a step. */
type Places = MemoryDatabase['slots']['slots'];

/** Checks every slot that is given, and every refusal, against what is true at that moment. */
export class SlotChecks {
  readonly #database: MemoryDatabase;
  readonly #time: VirtualTime;
  readonly #counts: Counts;
  readonly #keys: Map<string, KeyTruth>;
  /** The owner under whom each request got its slot. */
  readonly #owners = new Map<string, string>();
  #slots: Places = [];
  #waiting: Places = [];

  constructor(database: MemoryDatabase, time: VirtualTime, counts: Counts, keys: readonly PlannedKey[]) {
    this.#counts = counts;
    this.#database = database;
    this.#time = time;
    this.#keys = new Map(
      keys.map(({ id, limits }) => [
        id,
        { limits, running: new Map(), starts: [], isFull: false, lastFull: -1 },
      ]),
    );
  }

  /** A request is given a slot, and runs. Returns what is to be called at its end. */
  began(process: GatewayProcess, keyId: string, requestId: string): () => void {
    const { running, limits } = this.#key(keyId);
    const owner = this.#owners.get(requestId);
    if (owner === undefined) throw new Violation(`${requestId} runs, and never got a slot`);
    running.set(requestId, { process, owner });
    this.#checkRunning(keyId, running, limits.concurrency);
    process.running.set(keyId, (process.running.get(keyId) ?? 0) + 1);
    return () => {
      running.delete(requestId);
      process.running.set(keyId, (process.running.get(keyId) ?? 0) - 1);
    };
  }

  /** A request asks for a slot. Returns what is to be called with the answer. */
  asked(
    process: GatewayProcess,
    { id: keyId, limits }: PlannedKey,
    mayWait: boolean,
  ): (verdict: LimitDecision['verdict']) => void {
    const key = this.#key(keyId);
    const [askedAt, askedMs] = [this.#time.events, this.#database.nowMs()];
    const hasAll = (): boolean => (process.running.get(keyId) ?? 0) >= limits.concurrency;
    const hadAll = hasAll();
    return (verdict) => {
      if (verdict === 'granted') return;
      this.#counts[verdict === 'rate' ? 'refusals for rate' : 'refusals for concurrency']++;
      if (this.#time.events === askedAt) this.#counts['refusals without a call of the database']++;
      if (verdict === 'concurrency' && !mayWait && !hadAll && !hasAll())
        if (!key.isFull && key.lastFull < askedAt)
          throw new Violation(`a request of ${keyId} was refused while a slot was free all the time`);
      if (verdict !== 'rate') return;
      const last = key.starts.at(-limits.requestsPerMinute);
      if (last === undefined || last + windowMs <= askedMs)
        throw new Violation(`a request of ${keyId} was refused while a start was left all the time`);
    };
  }

  /** Checks the slots that were granted by a step. */
  stepped(): void {
    const { slots, waiting } = this.#database.slots;
    if (slots === this.#slots && waiting === this.#waiting) return;
    const before = this.#waiting;
    const known = new Set(this.#slots);
    const granted = slots.filter((slot) => !known.has(slot) && slot.isRestored === undefined);
    this.#slots = slots;
    this.#waiting = waiting;
    for (const { keyId, requestId, owner } of granted) {
      const key = this.#key(keyId);
      const nowMs = this.#database.nowMs();
      key.starts.push(nowMs);
      this.#owners.set(requestId, owner);
      const first = key.starts.at(-1 - key.limits.requestsPerMinute);
      if (first !== undefined && first > nowMs - windowMs)
        throw new Violation(`more starts of ${keyId} than allowed within a minute`);
      const place = before.findIndex((other) => other.requestId === requestId);
      const ahead = place === -1 ? before : before.slice(0, place);
      if (ahead.some((other) => other.keyId === keyId && waiting.includes(other)))
        throw new Violation(`${requestId} was served before a request that waited longer`);
      if (place === -1 && !this.#database.leases.isHeld(owner))
        throw new Violation(`${requestId} got a slot of a process without a lease`);
    }
    for (const [keyId, key] of this.#keys) {
      const ofKey = slots.filter((slot) => slot.keyId === keyId);
      const taken = ofKey.length;
      // What others got while a lease was ended runs beside the requests whose slots are restored: no further one may begin.
      const mayOverlap =
        ofKey.some(({ isRestored }) => isRestored) && granted.every((slot) => slot.keyId !== keyId);
      if (taken > key.limits.concurrency && !mayOverlap)
        throw new Violation(`${taken} slots of ${keyId} are taken`);
      const isFull = taken >= key.limits.concurrency || waiting.some((place) => place.keyId === keyId);
      if (key.isFull || isFull) key.lastFull = this.#time.events;
      key.isFull = isFull;
      this.#checkRunning(keyId, key.running, key.limits.concurrency);
    }
  }

  /** Checks the running requests of a key whose processes live and have their leases. */
  #checkRunning(keyId: string, running: KeyTruth['running'], concurrency: number): void {
    let count = 0;
    for (const [requestId, { process, owner }] of running) {
      if (process.isKilled || !this.#database.leases.has(owner)) continue;
      count++;
      if (!this.#slots.some((slot) => slot.requestId === requestId))
        throw new Violation(`${requestId} runs, and its slot was freed`);
    }
    if (count > concurrency) throw new Violation(`${count} requests of ${keyId} run, ${concurrency} may`);
  }

  #key(keyId: string): KeyTruth {
    const key = this.#keys.get(keyId);
    if (key === undefined) throw new Error(`no such key: ${keyId}`);
    return key;
  }
}

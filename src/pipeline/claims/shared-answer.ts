import type { Settled } from '../results.ts';
import { KeptDeltas } from './kept-deltas.ts';
import type { Blocks } from './kept-deltas.ts';

/**
 * How much of an answer is kept, in bytes as they are counted here: two for each UTF-16 code unit, and eight for each delta. It
 * is about 12,000 tokens of English. A longer answer goes on, and can't be joined any more.
 */
const maxAnswerBytes = 262_144;

/** The size of a delta as it is kept, in bytes. */
const sizeOf = (delta: string): number => 2 * delta.length + 8;

/** Memory for the texts of all answers that are kept. */
export interface AnswerMemory {
  /** Takes some bytes; returns whether there are as many. */
  take(bytes: number): boolean;
  giveBack(bytes: number): void;
  /** Where those that have ended are. */
  readonly blocks: Blocks;
}

/** The side of a client that gets an answer: here, or by way of another process. */
export interface Receiver {
  /** Whether the client has disconnected, or may have. */
  readonly hasLeft: boolean;
  /** Calls back when the client leaves before the end, or at once if it already has. */
  onLeft(callback: () => void): void;
  /** Sends text. Returns whether the client keeps up; if it does not, await `drained` before more is sent. */
  send(deltas: readonly string[]): boolean;
  drained(): Promise<void> | null;
  /** Sends the head of a stream that ended without text. */
  open(): void;
  /** Sends the end; resolves when it is written, or can't be. */
  conclude(settled: Settled): Promise<void>;
  /** Cuts the client off. */
  tearDown(): Promise<void>;
}

/** A client of an answer. */
interface Listener {
  readonly receiver: Receiver;
  /** How many deltas it was sent. */
  sent: number;
  /** Whether it has to read before it gets more. */
  isBehind: boolean;
  /** Resolves with whether it has all of the answer. */
  readonly gone: PromiseWithResolvers<boolean>;
}

/**
 * The answer of a claimed request, whose text is kept, so that clients may join it: each gets all of its deltas from the first
 * one on, as the first client does. Each reads at its own pace, and the fastest one sets the pace of the upstream: a connection
 * that broke without a word would otherwise hold up the client that has come back.
 */
export class SharedAnswer {
  readonly #memory: AnswerMemory;
  /** `null` once it is not kept: what has been sent can't be sent again. */
  #deltas: KeptDeltas | null = new KeptDeltas();
  #bytes = 0;
  #count = 0;
  readonly #listeners = new Set<Listener>();
  /** How many clients are being sent the end, and whether one has it. */
  #concluding = 0;
  #wasDelivered = false;
  #moved: PromiseWithResolvers<void> | null = null;
  /** Whether its request was stopped. */
  #isStopped = false;
  /** How it has ended. */
  #settled: Settled | null = null;
  /** Called when the last client has left before the end, and when one has come. */
  readonly #onListeners: (count: number) => void;

  constructor(memory: AnswerMemory, onListeners: (count: number) => void) {
    this.#memory = memory;
    this.#onListeners = onListeners;
  }

  /** Whether a client that comes now gets all of it. */
  get isWhole(): boolean {
    return this.#deltas !== null;
  }

  /** All of its text so far; `null` where that is not kept. */
  get text(): string | null {
    return this.#deltas?.text ?? null;
  }

  /** Whether a client has its end. */
  get wasDelivered(): boolean {
    return this.#wasDelivered;
  }

  /** Whether there is no client that gets it, or is being sent its end. */
  get hasNoClient(): boolean {
    return this.#listeners.size + this.#concluding === 0;
  }

  /** How many clients get it. */
  get listeners(): number {
    return this.#listeners.size;
  }

  /** Its text is kept for clients that come later, so it goes on without any. */
  get hasLeft(): boolean {
    return false;
  }

  /**
   * Sends all of it to a client, whose writer is set. Resolves with true when the client has the end; with false when it is cut
   * off, as it is too far behind, or has left, or when the signal is raised; rejects when it can't be sent.
   */
  listen(receiver: Receiver, signal: AbortSignal | null = null): Promise<boolean> {
    const listener: Listener = { receiver, sent: 0, isBehind: false, gone: Promise.withResolvers() };
    // The first client's is awaited at the end alone.
    listener.gone.promise.catch(() => {});
    this.#listeners.add(listener);
    this.#onListeners(this.#listeners.size);
    receiver.onLeft(() => this.#remove(listener));
    signal?.addEventListener('abort', () => this.#remove(listener));
    // A signal that was raised before tells nothing any more.
    if (signal?.aborted === true) this.#remove(listener);
    else this.#feed(listener);
    // One that keeps up ends the wait for those that do not.
    this.#noteMove();
    return listener.gone.promise;
  }

  /** Adds deltas, and sends them to all clients that keep up. Returns whether one does, or there is none. */
  send(deltas: readonly string[]): boolean {
    this.#keep(deltas);
    this.#count += deltas.length;
    for (const listener of this.#listeners) if (!listener.isBehind) this.#send(listener, deltas);
    return this.#keepsUp;
  }

  /** Resolves when one of the clients keeps up, none is left, or the request was stopped; `null` while that is so. */
  drained(): Promise<void> | null {
    if (this.#keepsUp) return null;
    this.#moved ??= Promise.withResolvers();
    return this.#moved.promise;
  }

  /** Its request was stopped: it waits for no client that does not read. */
  stop(): void {
    this.#isStopped = true;
    this.#noteMove();
  }

  /** Sends the head of a stream that ended without text. */
  open(): void {
    for (const { receiver } of this.#listeners) receiver.open();
  }

  /** No text follows: each client gets its end as soon as it has all of the text. Resolves when all who listen have it. */
  async end(settled: Settled): Promise<void> {
    this.#settled = settled;
    const listeners = [...this.#listeners];
    for (const listener of listeners) this.#feed(listener);
    await Promise.allSettled(listeners.map(({ gone }) => gone.promise));
  }

  /** Cuts all clients off. */
  tearDown(): void {
    for (const listener of this.#listeners) this.#cutOff(listener);
  }

  /** No text follows, and what there is may be kept for a while. */
  pack(): void {
    this.#deltas?.pack(this.#memory.blocks);
  }

  /** Drops the text. */
  forget(): void {
    this.#deltas = null;
    this.#memory.giveBack(this.#bytes);
    this.#bytes = 0;
  }

  get #keepsUp(): boolean {
    if (this.#isStopped || this.#listeners.size === 0) return true;
    for (const { isBehind } of this.#listeners) if (!isBehind) return true;
    return false;
  }

  #keep(deltas: readonly string[]): void {
    for (const delta of deltas) {
      if (this.#deltas === null) return;
      const size = sizeOf(delta);
      if (this.#bytes + size > maxAnswerBytes || !this.#memory.take(size)) {
        this.forget();
        // Those who would have come back can't have it any more.
        if (this.#listeners.size === 0) this.#onListeners(0);
        return;
      }
      this.#bytes += size;
      this.#deltas.add(delta);
    }
  }

  /** Sends a client what it has not got, until it has to read, and its end behind that. */
  #feed(listener: Listener): void {
    while (!listener.isBehind && listener.sent < this.#count && this.#listeners.has(listener)) {
      if (this.#deltas === null) return this.#cutOff(listener);
      this.#send(listener, this.#deltas.from(listener.sent));
    }
    if (listener.isBehind || this.#settled === null || !this.#listeners.delete(listener)) return;
    this.#conclude(listener, this.#settled).then(() => listener.gone.resolve(true), listener.gone.reject);
  }

  /** A client has its end. */
  noteDelivered(): void {
    this.#wasDelivered = true;
  }

  async #conclude({ receiver }: Listener, settled: Settled): Promise<void> {
    this.#concluding++;
    try {
      await receiver.conclude(settled);
      if (!receiver.hasLeft) this.noteDelivered();
    } finally {
      this.#concluding--;
      if (this.hasNoClient) this.#onListeners(0);
    }
  }

  #send(listener: Listener, deltas: readonly string[]): void {
    listener.sent += deltas.length;
    // What goes wrong with one client is nothing to the others.
    try {
      if (listener.receiver.send(deltas)) return;
    } catch (error) {
      listener.gone.reject(error);
      // What follows would not be the rest of what it has.
      return this.#cutOff(listener);
    }
    listener.isBehind = true;
    void listener.receiver.drained()?.then(() => {
      listener.isBehind = false;
      if (this.#listeners.has(listener)) this.#feed(listener);
      this.#noteMove();
    });
  }

  /** A client that did not keep up with an answer of which not all is kept can't get the rest. */
  #cutOff(listener: Listener): void {
    listener.receiver.tearDown().catch(listener.gone.reject);
    this.#remove(listener);
  }

  #remove(listener: Listener): void {
    if (!this.#listeners.delete(listener)) return;
    listener.gone.resolve(false);
    this.#noteMove();
    this.#onListeners(this.#listeners.size);
  }

  #noteMove(): void {
    if (!this.#keepsUp) return;
    this.#moved?.resolve();
    this.#moved = null;
  }
}

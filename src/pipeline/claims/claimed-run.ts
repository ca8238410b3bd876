import type { Clock } from '../../domain/ports/clock.ts';
import type { ClaimName } from '../../domain/ports/claims.ts';
import type { TextRequest } from '../../protocol/text.ts';
import type { Delivery } from '../delivery/delivery.ts';
import type { Settled } from '../results.ts';
import { SharedAnswer } from './shared-answer.ts';
import type { AnswerMemory } from './shared-answer.ts';

/** What the answers of a run are written from, for each of its clients. The prompt is no part of it. */
export interface AnswerSource {
  readonly request: Omit<TextRequest, 'turns'>;
  /** 32 hexadecimal digits, from which the ids in the answer are made, and when its request arrived: see `AnswerIdentity`. */
  readonly id: string;
  readonly arrivedAtMs: number;
  /** Whether its client has named it: the events of its stream have ids. */
  readonly isNamed: boolean;
}

type Phase = 'asking' | 'running' | 'stopping' | 'ended' | 'freed';

/** How a run is stopped. */
interface Stops {
  /** Its last client has left, and none has come back in time. Returns what calls the stop off, where that takes a while. */
  readonly left: () => () => void;
  /** Its process has lost the lease under which it has its claim. */
  readonly lost: () => void;
}

export interface RunOptions {
  readonly clock: Clock;
  readonly memory: AnswerMemory;
  /** How long it goes on without a client, in milliseconds. */
  readonly graceMs: () => number;
  /** Its name is free. */
  readonly onFreed: () => void;
  /** Its request is over. */
  readonly onOver: () => void;
}

/**
 * One request in this process whose answer others may join: under a claim, from the moment at which it asks for that, or without
 * a name, for the retries of its own client alone:
 *
 * - `asking`: it is admitted and read, and its claim, if any, is written; others wait for what becomes of it;
 * - `running`: it has its claim, and its upstream may be called; others join it;
 * - `stopping`: it was stopped, and others wait for what becomes of its claim;
 * - `ended`: it was charged, and its answer is kept for a while;
 * - `freed`: it has come to nothing, or its answer is gone: others ask for the claim themselves.
 */
export class ClaimedRun {
  readonly keyId: string;
  /** The claim that it runs; `null` where its client has not named it, and it is kept for a retry alone. */
  readonly claim: ClaimName | null;
  readonly requestId: string;
  readonly answer: SharedAnswer;
  readonly #options: RunOptions;
  #known = Promise.withResolvers<void>();
  /** SHA-256 of all that it asks; `null` before that is read. */
  request: string | null = null;
  /** Whether its claim may be stored. */
  isStored = false;
  /** How many clients join it, or wait to. */
  joins = 0;
  #phase: Phase = 'asking';
  #asked: AnswerSource | null = null;
  #first: Promise<boolean> | null = null;
  #stops: Stops | null = null;
  #cancelGrace: (() => void) | null = null;
  #settled: Settled | null = null;
  readonly #over = Promise.withResolvers<void>();
  #left: PromiseWithResolvers<void> | null = null;

  constructor(keyId: string, claim: ClaimName | null, requestId: string, options: RunOptions) {
    this.keyId = keyId;
    this.claim = claim;
    this.requestId = requestId;
    this.#options = options;
    this.answer = new SharedAnswer(options.memory, (count) => this.#countListeners(count));
  }

  get phase(): Phase {
    return this.#phase;
  }

  /** How long it goes on without a client, in milliseconds. */
  get graceMs(): number {
    return this.#options.graceMs();
  }

  /** Resolves when its last client goes. */
  get left(): Promise<void> {
    return (this.#left ??= Promise.withResolvers<void>()).promise;
  }

  /** Whether it has an answer that a later client gets all of, and whose end no client has. */
  get mayBeLeft(): boolean {
    const { isWhole, wasDelivered } = this.answer;
    return (this.#phase === 'running' || this.#phase === 'ended') && isWhole && !wasDelivered;
  }

  /** Whether all of its clients have gone before they had the end of such an answer, and none is about to join it. */
  get isLeft(): boolean {
    return this.mayBeLeft && this.answer.hasNoClient && this.joins === 0;
  }

  /** What it asks, and its id: `null` before it runs. */
  get asked(): AnswerSource | null {
    return this.#asked;
  }

  /** How its request has ended; `null` before its clients are told. */
  get settled(): Settled | null {
    return this.#settled;
  }

  /** Resolves when its clients are told how its request has ended, or it is over without. */
  get over(): Promise<void> {
    return this.#over.promise;
  }

  /** Resolves when it can be joined, or is freed. */
  get known(): Promise<void> {
    return this.#known.promise;
  }

  /** It has its claim, and its answer goes to the client that asked first, and to those that join it. */
  run(asked: AnswerSource, delivery: Delivery, stops: Stops): void {
    this.#asked = asked;
    this.#stops = stops;
    this.#phase = 'running';
    this.#first = this.answer.listen(delivery);
    this.#known.resolve();
  }

  /** It was stopped: its clients are told so, and no other one joins it. */
  stop(): void {
    if (this.#phase !== 'running') return;
    this.#phase = 'stopping';
    this.answer.stop();
    this.#known = Promise.withResolvers();
  }

  /** Gives all clients their end; resolves when they have it. Rejects when the first one can't be sent what there is for it. */
  async conclude(settled: Settled): Promise<void> {
    this.#settled = settled;
    this.#over.resolve();
    await Promise.all([this.answer.end(settled), this.#first]);
  }

  /** Its process has lost its lease: others may run its claim. */
  lose(): void {
    if (this.#phase === 'running' && this.claim !== null) this.#stops?.lost();
  }

  /** It was charged, and its answer is there for those who ask again, also where it was stopped too late. */
  ended(): void {
    this.#endGrace();
    this.answer.pack();
    this.#phase = 'ended';
    this.#known.resolve();
  }

  /** It has come to nothing, or its answer is not to be had any more. Those who have it are sent the rest. */
  free(): void {
    if (this.#phase === 'freed') return;
    this.#endGrace();
    this.#phase = 'freed';
    this.#options.onFreed();
    this.#known.resolve();
  }

  /** Its request is over. */
  leave(): void {
    this.#over.resolve();
    this.#endGrace();
    // They lead to all that its request was made of, such as its prompt.
    this.#stops = null;
    this.#first = null;
    if (this.#phase !== 'ended') {
      this.free();
      this.answer.forget();
    }
    this.#options.onOver();
  }

  #endGrace(): void {
    this.#cancelGrace?.();
    this.#cancelGrace = null;
  }

  #countListeners(count: number): void {
    this.#endGrace();
    if (count > 0) return;
    this.#left?.resolve();
    this.#left = null;
    if (this.#phase !== 'running') return;
    const { clock, graceMs } = this.#options;
    const stop = (): void => void (this.#cancelGrace = this.#stops?.left() ?? null);
    // What is not kept can't be joined again: to go on would cost its key something for nothing.
    if (!this.answer.isWhole) stop();
    else this.#cancelGrace = clock.schedule(graceMs(), stop);
  }
}

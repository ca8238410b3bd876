import type { Clock } from '../../domain/ports/clock.ts';
import type { UpstreamFault } from '../../domain/ports/upstreams.ts';

/** Why an attempt is stopped while its request goes on. */
type StopReason = 'first_text_timeout' | 'hedge_lost';

/**
 * Stops one attempt: with its request, when its first text is late, or when another attempt beside it has text. Only
 * attempts of which one of the latter may happen have one; all others are stopped by the signal of their request.
 */
export class AttemptStop {
  readonly #own = new AbortController();
  readonly #request: AbortSignal;
  readonly #race: Race | null;
  #cancelDeadline: (() => void) | null = null;
  #fedMs = 0;
  #onLost: (() => void) | null = null;

  constructor(request: AbortSignal, race: Race | null) {
    this.#request = request;
    this.#race = race;
    if (request.aborted) this.#follow();
    else request.addEventListener('abort', this.#follow, { once: true });
    race?.join(this);
  }

  /** Raised when the attempt must stop; its reason is an `Interruption`, or a reason of the attempt's own. */
  get signal(): AbortSignal {
    return this.#own.signal;
  }

  /** Begins the deadline of the first text, `limitMs` from now. */
  expectText(limitMs: number, clock: Clock): void {
    this.#fedMs = clock.monotonicMs();
    const check = (): void => {
      const leftMs = this.#fedMs + limitMs - clock.monotonicMs();
      if (leftMs <= 0) this.#stop('first_text_timeout');
      else this.#cancelDeadline = clock.schedule(leftMs, check);
    };
    this.#cancelDeadline = clock.schedule(limitMs, check);
  }

  /** Puts the deadline off: it runs from `nowMs`. */
  feed(nowMs: number): void {
    this.#fedMs = nowMs;
  }

  /** Ends the deadline: the upstream refused the request. */
  answered(): void {
    this.#cancelDeadline?.();
    this.#cancelDeadline = null;
  }

  /** Sets what is called when another attempt has text first, once this one is stopped. */
  onLost(callback: () => void): void {
    this.#onLost = callback;
  }

  /** The first text has come: returns whether it may be sent, because no other attempt had text before. */
  opens(): boolean {
    this.answered();
    return this.#race === null || this.#race.claim(this);
  }

  /**
   * A whole answer without text has come: resolves, once no other attempt may bring a text any more or one of them did, with
   * whether it may be sent. Sent at once, it would stop the one that is about to have the text.
   */
  async opensEmpty(): Promise<boolean> {
    this.answered();
    if (this.#race === null) return true;
    await this.#race.othersOver(this);
    return !this.#own.signal.aborted && this.#race.claim(this);
  }

  /** Stops the attempt, because another one had text first or decided the request. */
  lose(): void {
    this.answered();
    if (this.#own.signal.aborted) return;
    this.#stop('hedge_lost');
    // After that: a permit that is released before its call is aborted is used for one more call than the upstream allows.
    this.#onLost?.();
  }

  /** The attempt has failed, and needs no stop any more. */
  ended(): void {
    this.answered();
    this.#onLost = null;
    this.#request.removeEventListener('abort', this.#follow);
  }

  readonly #follow = (): void => {
    this.answered();
    this.#own.abort(this.#request.reason);
    this.#race?.failed();
  };

  #stop(reason: StopReason): void {
    this.#own.abort(reason);
  }
}

/**
 * Two attempts of one request that run at the same time: the first one with text stops the other, and no text follows it. A
 * whole answer without text waits until the other one has failed, or has none, too.
 */
export class Race {
  readonly #running: AttemptStop[] = [];
  /** Those that have a whole answer without text. */
  readonly #empty: AttemptStop[] = [];
  /** Resolves once such an answer need not wait any more. */
  readonly #awaited = Promise.withResolvers<void>();
  #winner: AttemptStop | null = null;

  /** Whether one of them had text, or all were stopped. */
  isOver = false;

  /** Whether none of them had text, or was stopped. */
  get isRunning(): boolean {
    return !this.isOver && this.#running.every(({ signal }) => !signal.aborted);
  }

  join(attempt: AttemptStop): void {
    this.#running.push(attempt);
  }

  /** Returns whether this attempt is the first with text. */
  claim(attempt: AttemptStop): boolean {
    if (this.isOver) return this.#winner === attempt;
    this.#winner = attempt;
    this.stop(attempt);
    return true;
  }

  /** Notes an answer without text; resolves once no other attempt may bring a text any more, or one of them did. */
  othersOver(attempt: AttemptStop): Promise<void> {
    this.#empty.push(attempt);
    if (this.#running.every((each) => this.#empty.includes(each))) this.#awaited.resolve();
    return this.#awaited.promise;
  }

  /** One attempt has failed without deciding the request: the other one's answer is sent, whatever it is. */
  failed(): void {
    this.#awaited.resolve();
  }

  /** Stops all attempts, but for one. */
  stop(but: AttemptStop | null = null): void {
    this.isOver = true;
    this.#awaited.resolve();
    for (const each of this.#running) if (each !== but) each.lose();
  }
}

/** What stopped a call: its signal says `interrupted` to it, whatever the reason was. */
export function reasonOf(fault: UpstreamFault, signal: AbortSignal): UpstreamFault {
  const isLate =
    fault.fault === 'interrupted' && signal.reason === ('first_text_timeout' satisfies StopReason);
  return isLate ? { kind: 'fault', fault: 'first_text_timeout' } : fault;
}

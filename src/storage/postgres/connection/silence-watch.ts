import type { Clock } from '../../../domain/ports/clock.ts';

interface SilenceOptions {
  readonly clock: Clock;
  /** How long the silence may last, in milliseconds. */
  readonly silenceMs: number;
  /** Whether something has to come; otherwise silence is no fault. */
  readonly isWaiting: () => boolean;
  readonly onSilence: () => void;
}

/** Calls back when nothing comes for too long. */
export class SilenceWatch {
  readonly #options: SilenceOptions;
  #heardMs = 0;
  #cancel: (() => void) | null = null;

  constructor(options: SilenceOptions) {
    this.#options = options;
  }

  /** Something has to come from now on. */
  start(): void {
    this.hear();
    // One timer for many waits: setting one for each would cost more than what is waited for.
    this.#cancel ??= this.#options.clock.schedule(this.#options.silenceMs, () => this.#check());
  }

  /** Something came: the silence begins anew. */
  hear(): void {
    this.#heardMs = this.#options.clock.monotonicMs();
  }

  /** How long nothing came, in milliseconds. */
  get silentMs(): number {
    return this.#options.clock.monotonicMs() - this.#heardMs;
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = null;
  }

  #check(): void {
    this.#cancel = null;
    const { clock, silenceMs, isWaiting, onSilence } = this.#options;
    if (!isWaiting()) return;
    const leftMs = this.#heardMs + silenceMs - clock.monotonicMs();
    if (leftMs <= 0) onSilence();
    else this.#cancel = clock.schedule(leftMs, () => this.#check());
  }
}

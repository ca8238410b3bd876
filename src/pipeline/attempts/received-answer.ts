import { TextSample } from '../../protocol/kept-text.ts';
import type { Progress } from '../../domain/money/settlement.ts';
import type { UpstreamReader } from '../../protocol/upstream/dialect.ts';

/** What the reader of an attempt's answer knows beside its text. */
type Reading = Pick<UpstreamReader['answer'], 'thoughts' | 'named'>;

function nothingRead(): Reading {
  return { thoughts: new TextSample(), named: null };
}

/** The received part of an answer: what its charge and its timings depend on. */
export class ReceivedAnswer {
  /** The text that arrived while a client was connected. */
  readonly text = new TextSample();
  #reading: Reading = nothingRead();
  /** Where the thoughts are received that count, if the attempt of this one has failed or lost. */
  #other: ReceivedAnswer | null = null;
  /** Whether the upstream has a request for a whole answer and has not refused it: its progress can't be seen. */
  #awaitsWhole = false;
  #firstTextMs: number | null = null;

  /** The thoughts of the attempt whose answer is being read. */
  get thoughts(): TextSample {
    return this.#read.thoughts;
  }

  /** The counts of the attempt's usage, if they do not add up: our own count charges no more; `null` for any other. */
  get named(): Reading['named'] {
    return this.#read.named;
  }

  get #read(): Reading {
    return this.#other === null ? this.#reading : this.#other.#read;
  }

  /** When the first text arrived, on the monotonic clock; `null` before that. */
  get firstTextMs(): number | null {
    return this.#firstTextMs;
  }

  /** Another attempt begins: the state of the one before is dropped. */
  reset(): void {
    this.#other = null;
    if (this.#reading.thoughts.chars > 0 || this.#reading.named !== null) this.#reading = nothingRead();
    this.#awaitsWhole = false;
  }

  /** The upstream has all of a request for a whole answer. */
  awaitWhole(): void {
    this.#awaitsWhole = true;
  }

  /** The upstream refused the request, or was not reached: a client that disconnects later must not pay for it. */
  refused(): void {
    this.#awaitsWhole = false;
  }

  /** The attempt beside this one is the one that counts from now on: what this one thought must not be charged. */
  follow(other: ReceivedAnswer): void {
    this.#other = other;
  }

  /** Sets the state of the answer that is read from now on. */
  reads(reading: Reading): void {
    this.#reading = reading;
  }

  add(deltas: readonly string[], nowMs: number): void {
    this.#firstTextMs ??= nowMs;
    for (const delta of deltas) this.text.add(delta);
  }

  /** The progress of the answer; `isStream` is whether its text was sent as it arrived. */
  progress(isStream: boolean): Progress {
    if (this.text.chars > 0) return isStream ? 'sent' : 'unsent';
    if (this.thoughts.chars > 0) return 'unsent';
    return this.#awaitsWhole ? 'awaited' : 'none';
  }
}

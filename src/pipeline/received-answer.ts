import { TextSample } from '../protocol/text-sample.ts';
import type { Progress } from '../domain/settlement.ts';

/** What has come of an answer, as far as its charge and its times depend on it. */
export class ReceivedAnswer {
  /** The text, as far as it came while a client was there. */
  readonly text = new TextSample();
  #thoughts = new TextSample();
  /** Whether the upstream was sent a request for a whole answer and has not refused it: nothing shows before its end. */
  #awaitsWhole = false;
  #firstTextMs: number | null = null;

  /** The thoughts of the attempt whose answer is being read. */
  get thoughts(): TextSample {
    return this.#thoughts;
  }

  /** When the first text came, on the monotonic clock; `null` before it. */
  get firstTextMs(): number | null {
    return this.#firstTextMs;
  }

  /** Another attempt is made: what was known of the one before does not count. */
  reset(): void {
    this.#thoughts = new TextSample();
    this.#awaitsWhole = false;
  }

  /** The upstream has all of a request for a whole answer. */
  awaitWhole(): void {
    this.#awaitsWhole = true;
  }

  /** The upstream refused the request, or could not be asked: a client that leaves later must not pay for it. */
  refused(): void {
    this.#awaitsWhole = false;
  }

  /** `thoughts` fills while the answer is read. */
  reads(thoughts: TextSample): void {
    this.#thoughts = thoughts;
  }

  add(text: string, nowMs: number): void {
    this.#firstTextMs ??= nowMs;
    this.text.add(text);
  }

  /** How far the answer had come; `isStream` tells whether its text went out as it came. */
  progress(isStream: boolean): Progress {
    if (this.text.chars > 0) return isStream ? 'sent' : 'unsent';
    if (this.#thoughts.chars > 0) return 'unsent';
    return this.#awaitsWhole ? 'awaited' : 'none';
  }
}

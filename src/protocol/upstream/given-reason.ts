import type { FinishReason } from '../text.ts';

/** A finish reason as the upstream wrote it, and what it means. */
export interface Reason {
  readonly raw: string;
  readonly unified: FinishReason;
}

/** The reason of an answer whose upstream marked the end without giving a finish reason. */
export const unsaid: Reason = { raw: '', unified: 'stop' };

/** How much a finish reason says of missing text: of several, the one that says most is true. */
const missing: Readonly<Record<FinishReason, number>> = { stop: 0, length: 1, content_filter: 2 };

/** The later of two finish reasons, unless the earlier one says more of missing text. */
function weightierOf(earlier: Reason | null, later: Reason): Reason {
  return earlier !== null && missing[later.unified] < missing[earlier.unified] ? earlier : later;
}

/** Whether an answer ended with the marker of its protocol, as a whole body does; `none` if its protocol has none. */
export type EndMark = 'given' | 'missing' | 'none';

/** The finish reason of an answer so far, and whether it was given for all of the text. */
export class GivenReason {
  /** `null` before the first one. */
  reason: Reason | null = null;
  /** The numbers of the last frame with a reason, and of the last one with text or thoughts. */
  #givenIn = 0;
  #saidIn = 0;
  /** How many frames had a reason. */
  #given = 0;
  #hasText = false;
  /** Whether a frame with text, or one with thoughts, had no reason. */
  #textWithout = false;
  #thoughtWithout = false;

  /**
   * Takes the reason of a frame, before its text. Some upstreams send `stop` on every frame, and the true reason first or last:
   * so a reason that says that text is missing stands.
   */
  take(reason: Reason, frame: number): void {
    this.reason = weightierOf(this.reason, reason);
    this.#givenIn = frame;
    this.#given++;
  }

  noteText(frame: number): void {
    this.#saidIn = frame;
    this.#hasText = true;
    this.#textWithout ||= this.#givenIn < frame;
  }

  noteThought(frame: number): void {
    this.#saidIn = frame;
    this.#thoughtWithout ||= this.#givenIn < frame;
  }

  /**
   * Whether the reason says that the text is whole. It does not if text or thoughts came after it; nor if the upstream gives
   * one on every frame, and the marker is missing that would tell the last one from the others. A text that was blocked
   * stays blocked: it must go to no other provider.
   */
  isProof(mark: EndMark): boolean {
    if (this.reason === null) return false;
    if (mark === 'given' || this.reason.unified === 'content_filter') return true;
    const isOnEvery = this.#given > 1 && !(this.#hasText ? this.#textWithout : this.#thoughtWithout);
    if (mark === 'missing' && isOnEvery) return false;
    return this.#givenIn >= this.#saidIn;
  }
}

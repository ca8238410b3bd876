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

/**
 * How the end of a stream was marked: by the marker of its protocol, not by it (so the stream may have been cut off), or
 * its protocol has none.
 */
export type EndMark = 'given' | 'missing' | 'none';

/** The finish reason of an answer so far, and whether it was given for all of the text. */
export class GivenReason {
  /** `null` before the first one. */
  reason: Reason | null = null;
  /** The numbers of the first and the last frame with a reason, and of the last one with text. */
  #firstIn = 0;
  #givenIn = 0;
  #textIn = 0;

  /**
   * Takes the reason of a frame. Some upstreams send `stop` on every frame, and the true reason first or last: so a reason
   * that says that text is missing stands.
   */
  take(reason: Reason, frame: number): void {
    if (this.reason === null) this.#firstIn = frame;
    this.reason = weightierOf(this.reason, reason);
    this.#givenIn = frame;
  }

  /** Notes that a frame has text. */
  noteText(frame: number): void {
    this.#textIn = frame;
  }

  /**
   * Whether the reason says that the text is whole. It does not if text came after it; nor if it comes with the text of an
   * upstream that gave one before other text, too, and the marker is missing that would tell the last one from those before.
   * A text that was blocked stays blocked: it must go to no other provider.
   */
  isProof(mark: EndMark): boolean {
    if (this.reason === null) return false;
    if (mark === 'given' || this.reason.unified === 'content_filter') return true;
    if (mark === 'missing' && this.#firstIn < this.#textIn) return this.#givenIn > this.#textIn;
    return this.#givenIn >= this.#textIn;
  }
}

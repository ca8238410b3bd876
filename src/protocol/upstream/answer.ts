import type {
  AnswerEnding,
  AnswerPart,
  Failure,
  FailureKind,
  FinishReasonRule,
  ProtocolViolation,
  Usage,
} from '../text.ts';
import { TextSample } from '../kept-text.ts';
import { classifyReported } from './classify-error.ts';
import { failure, invalidAnswer, toolCalled } from './failures.ts';
import { GivenReason, readFinishReason, unsaid } from './finish-reasons.ts';
import type { EndMark } from './finish-reasons.ts';
import { ReportedUsage } from './reported-usage.ts';
import type { NamedTokens } from './reported-usage.ts';
import { TaggedThoughts } from './tagged-thoughts.ts';
import type { CachePlace } from './usage-reading.ts';
import type { Sanitise } from './words/sanitise.ts';

/** The longest text of an answer, in UTF-16 code units: an upstream that never stops must not fill the memory. */
const maxAnswerChars = 16_777_216;

/** What is wrong with an answer whose text goes on after a finish reason, and ends without another one and without a marker. */
const textAfterReason = 'text after a finish reason, and no end marker after that';

/** What decides how an answer is read, beside its dialect. */
export interface AnswerRules {
  readonly finishReason: FinishReasonRule;
  /** The tag in which the text begins with thoughts; `null` for none. */
  readonly thoughtTag: string | null;
  /** The most tokens that the text of the request can have. */
  readonly sentTokens: number;
  /** Makes what the upstream reports of an error fit to be shown. */
  readonly sanitise: Sanitise;
  /** Set if a complete answer without text counts as a failed one, so that the next route is tried. */
  readonly emptyFails?: true;
}

/**
 * The state of one answer: a dialect reports each frame to it, and it returns parts that obey the order law. A finish
 * reason is only remembered, since text and usage may follow it; the ending is built from the remembered reason, so it
 * is never invented.
 */
export class Answer {
  readonly violations = new Set<ProtocolViolation>();
  /** Thoughts are counted but not passed on. */
  readonly thoughts = new TextSample();
  /** Why the reported usage is implausible; `null` while it is not. */
  implausible: string | null = null;
  /** The counts of usage that does not add up: our own count charges no more than these; `null` for any other. */
  named: NamedTokens | null = null;
  /** Set if an event changed what its dialect remembers: others of its form must not be taken for mere text. */
  hasMemory = false;
  readonly #usage = new ReportedUsage();
  /** The number of the current frame, of the last frame with text or thoughts, and of the last one with usage. */
  #frame = 0;
  #saidIn = 0;
  #reportedIn = 0;
  /** The size of text and thoughts, in bytes of UTF-8. */
  #bytes = 0;
  readonly #given = new GivenReason();
  #hasReport = false;
  /** Whether anything was there in which text may stand, even if it was empty. */
  #hasContent = false;
  readonly #text = new TextPieces();
  #ending: AnswerEnding | null = null;
  /** Whether `take` has returned the ending. */
  #isOver = false;
  readonly #rules: AnswerRules;
  /** Tells thoughts from text until the text has begun; `null` where they never stand in it. */
  readonly #tagged: TaggedThoughts | null;

  constructor(rules: AnswerRules) {
    this.#rules = rules;
    this.#tagged = rules.thoughtTag === null ? null : new TaggedThoughts(rules.thoughtTag);
  }

  /** How the answer ended; `null` while it runs. */
  get ending(): AnswerEnding['kind'] | null {
    return this.#ending?.kind ?? null;
  }

  /** Whether any text has arrived. */
  get hasText(): boolean {
    return this.#text.chars > 0;
  }

  /** Whether a finish reason has arrived. */
  get hasReason(): boolean {
    return this.#given.reason !== null;
  }

  /** Whether any usage was reported, true or not. */
  get hasReport(): boolean {
    return this.#hasReport;
  }

  /** Notes that text would stand here, if there were any: an answer in which it has no place was not understood. */
  noteContent(): void {
    this.#hasContent = true;
  }

  /** How many pieces of text have arrived since they were last taken. */
  get pieces(): number {
    return this.#text.count;
  }

  /** The last of these pieces; empty without any. */
  get lastPiece(): string {
    return this.#text.last;
  }

  /** Begins the next frame. Usage covers everything up to the end of its frame, in any order within it. */
  nextFrame(): void {
    this.#frame++;
  }

  /** Adds text; an empty one is ignored. */
  say(text: string): void {
    if (text === '' || this.#ending !== null) return;
    this.#given.noteText(this.#frame);
    if (this.#tagged === null) this.#sayText(text);
    else this.#sayTold(this.#tagged.take(text));
  }

  #sayTold({ thought, text }: ReturnType<TaggedThoughts['take']>): void {
    this.#addThought(thought);
    if (text !== '') this.#sayText(text);
  }

  #sayText(piece: string): void {
    this.#noteText(this.#text.add(piece));
  }

  #noteText(text: string): void {
    if (text === '') return;
    this.#bytes += Buffer.byteLength(text);
    this.#saidIn = this.#frame;
    if (this.#text.chars > maxAnswerChars) this.fail(invalidAnswer('an answer that is too long'));
  }

  /** Adds to the model's thoughts; anything but a non-empty string is ignored. */
  think(text: unknown): void {
    if (typeof text !== 'string' || text === '' || this.#ending !== null) return;
    this.#given.noteThought(this.#frame);
    this.#addThought(text);
  }

  #addThought(text: string): void {
    if (text === '') return;
    this.thoughts.add(text);
    this.#bytes += Buffer.byteLength(text);
    this.#saidIn = this.#frame;
  }

  /** Adds a usage report of a dialect that has cached input in this place; anything but an object is ignored. */
  report(usage: unknown, cache: CachePlace): void {
    if (usage === undefined || usage === null) return;
    this.#hasReport = true;
    if (this.#usage.add(usage, cache)) this.#reportedIn = this.#frame;
  }

  /** The usage known so far; `null` if it is missing or implausible. What is implausible of it is noted as a violation. */
  knownUsage(): Usage | null {
    const judged = this.#usage.judge({
      sentTokens: this.#rules.sentTokens,
      receivedBytes: this.#bytes,
      isStale: this.#saidIn > this.#reportedIn,
    });
    if (judged.kind === 'plausible' && judged.hasExcess) this.violations.add('excess_reasoning');
    if (judged.kind === 'plausible') return judged.usage;
    if (judged.kind === 'missing') return null;
    this.implausible = judged.why;
    this.named = judged.named;
    this.violations.add('implausible_usage');
    return null;
  }

  /** Takes a finish reason as the upstream wrote it. An unknown one fails the answer: it may not be complete. */
  finishWith(raw: string): void {
    const unified = readFinishReason(raw);
    if (unified === 'unset') return;
    if (unified === 'tool') this.fail(toolCalled());
    else if (unified === 'unknown') this.failAsReported(null);
    else this.#given.take({ raw, unified }, this.#frame);
  }

  /**
   * Ends the answer: as finished if the upstream gave a reason, else as truncated. A marker of the end counts as a reason
   * if the operator configured `finishReason` as optional.
   */
  conclude(mark: EndMark): void {
    if (this.#ending !== null) return;
    if (this.#tagged !== null) this.#sayTold(this.#tagged.end());
    this.#noteText(this.#text.end());
    // What was held back may have made the text too long.
    if (this.#ending !== null) return;
    const given = this.#given.reason;
    if (given !== null && mark === 'missing') this.violations.add('missing_done');
    const isProven = this.#given.isProof(mark);
    if (!isProven) this.violations.add('missing_finish');
    // What ends without a word, and of which nothing was read, may be an answer in a form that is not known.
    const isMarked = mark === 'given' && this.#rules.finishReason === 'optional' && this.hasText;
    const reason = given ?? (isMarked ? unsaid : null);
    if (given !== null && !isProven) return this.fail(failure('truncated', { detail: textAfterReason }));
    if (reason === null) return this.fail(failure(this.#cutOff(mark)));
    const isEmpty = this.#hasContent && !this.violations.has('skipped_content');
    const isRead = this.hasText || this.thoughts.chars > 0 || isEmpty;
    if (!isRead && reason.unified === 'stop')
      return this.fail(invalidAnswer('an answer in which no text was found'));
    if (!this.hasText) this.violations.add('empty_answer');
    // A text that was blocked goes to no other provider.
    const isBlocked = reason.unified === 'content_filter';
    if (!this.hasText && this.#rules.emptyFails === true && !isBlocked) return this.fail(failure('empty'));
    const usage = this.knownUsage();
    if (usage === null && this.implausible === null) this.violations.add('missing_usage');
    this.#ending = { kind: 'finished', reason: reason.unified, rawReason: reason.raw, usage };
  }

  /** How an answer without a finish reason failed. */
  #cutOff(mark: EndMark): FailureKind {
    if (mark === 'given' && this.hasText) return 'unfinished';
    return !this.hasText && this.thoughts.chars === 0 ? 'empty' : 'truncated';
  }

  /** Ends the answer with an error that the upstream reported in it, in whatever form; `null` without any. */
  failAsReported(error: unknown): void {
    if (this.#ending === null) this.fail(classifyReported(error, this.#rules.sanitise));
  }

  /** Ends the answer as failed, unless it has ended. */
  fail(failed: Failure): void {
    this.#ending ??= { kind: 'failed', failure: failed, usage: this.knownUsage() };
  }

  /** Returns what has arrived since the last call; the ending is returned once. */
  take(): AnswerPart {
    const deltas = this.#text.take();
    const ending = this.#isOver ? null : this.#ending;
    this.#isOver = this.#ending !== null;
    return { deltas, ending };
  }
}

/** A first half of a surrogate pair at the end of a text. */
const firstHalf = /[\uD800-\uDBFF]$/;

/** The text of an answer in the pieces in which it arrives, each of them well-formed. */
class TextPieces {
  /** The size of the whole text in UTF-16 code units. */
  chars = 0;
  /** The pieces that have arrived since they were last taken. */
  #waiting: string[] = [];
  /** The first half of a surrogate pair whose other half has not come yet. */
  #half = '';

  get count(): number {
    return this.#waiting.length;
  }

  get last(): string {
    return this.#waiting.at(-1) ?? '';
  }

  /**
   * Adds a piece, and returns what of it can be sent. Half a surrogate pair at its end waits for the next piece: clients
   * that print each piece break at halves.
   */
  add(piece: string): string {
    if (this.#half === '' && piece.isWellFormed()) return this.#push(piece);
    const text = this.#half + piece;
    this.#half = firstHalf.exec(text)?.[0] ?? '';
    return this.#push(text.slice(0, text.length - this.#half.length).toWellFormed());
  }

  /** Ends the text: a half that is left is no character. Nothing may be added after this. */
  end(): string {
    return this.#push(this.#half.toWellFormed());
  }

  take(): string[] {
    const taken = this.#waiting;
    this.#waiting = [];
    return taken;
  }

  #push(text: string): string {
    if (text === '') return text;
    this.chars += text.length;
    this.#waiting.push(text);
    return text;
  }
}

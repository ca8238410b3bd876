import type {
  AnswerEnding,
  AnswerPart,
  Failure,
  FinishReason,
  FinishReasonRule,
  ProtocolViolation,
  Usage,
} from '../text.ts';
import { TextSample } from '../text-sample.ts';
import { failure, invalidAnswer, toolCalled } from './failures.ts';
import { finishReasons } from './finish-reasons.ts';
import { classifyReported } from './classify-error.ts';
import { ReportedUsage } from './reported-usage.ts';
import type { UsageNames } from './token-counts.ts';

/** More text than any answer has, in UTF-16 code units: an upstream that never stops must not fill the memory. */
const maxAnswerChars = 16_777_216;

/** Finish reasons of an answer that called a tool, though none was offered. */
const toolReasons = new Set([
  'tool_calls',
  'function_call',
  'tool_use',
  'UNEXPECTED_TOOL_CALL',
  'MALFORMED_FUNCTION_CALL',
]);

interface Reason {
  readonly raw: string;
  readonly unified: FinishReason;
}

/** The reason of an answer that was marked as over by an upstream that gives none. */
const unsaid: Reason = { raw: '', unified: 'stop' };

/**
 * What one answer has said so far, told frame by frame by its dialect, and given out as parts that obey the order
 * law. A finish reason is only remembered, since text and usage may follow it; the ending is made from what was
 * remembered, so it is never invented.
 */
export class Answer {
  readonly violations = new Set<ProtocolViolation>();
  /** Thoughts are counted and not passed on. */
  readonly thoughts = new TextSample();
  /** Why the usage that the upstream reported can't be true; `null` unless it is known to be so. */
  implausible: string | null = null;
  readonly #usage = new ReportedUsage();
  /** The number of the frame that is being read, of the last one with text or thoughts, and of the last with usage. */
  #frame = 0;
  #saidIn = 0;
  #reportedIn = 0;
  #bytes = 0;
  #reason: Reason | null = null;
  #chars = 0;
  #deltas: string[] = [];
  #ending: AnswerEnding | null = null;
  /** Whether the ending has been given out. */
  #isOver = false;
  readonly #finishReason: FinishReasonRule;
  readonly #sentTokens: number;

  /** `sentTokens` is the most that the text of the request can count. */
  constructor(finishReason: FinishReasonRule, sentTokens: number) {
    this.#finishReason = finishReason;
    this.#sentTokens = sentTokens;
  }

  /** How the answer ended; `null` while it runs. */
  get ending(): AnswerEnding['kind'] | null {
    return this.#ending?.kind ?? null;
  }

  /** Whether any text has come. */
  get hasText(): boolean {
    return this.#chars > 0;
  }

  /** Whether a finish reason has come. */
  get hasReason(): boolean {
    return this.#reason !== null;
  }

  /** Another frame is read. Usage counts what came up to the end of its frame, whatever the order within. */
  nextFrame(): void {
    this.#frame++;
  }

  /** More text; nothing happens when there is none. */
  say(text: string): void {
    if (text === '' || this.#ending !== null) return;
    this.#chars += text.length;
    this.#bytes += Buffer.byteLength(text);
    this.#saidIn = this.#frame;
    if (this.#chars > maxAnswerChars) this.fail(invalidAnswer('an answer that is too long'));
    else this.#deltas.push(text);
  }

  /** More of what the model thinks; nothing happens when there is none. */
  think(text: unknown): void {
    if (typeof text !== 'string' || text === '' || this.#ending !== null) return;
    this.thoughts.add(text);
    this.#saidIn = this.#frame;
  }

  /** What the upstream says of its usage, by its dialect's names; nothing happens when that is no object. */
  report(usage: unknown, names: UsageNames): void {
    if (this.#usage.add(usage, names)) this.#reportedIn = this.#frame;
  }

  /** The usage as far as it is known now; `null` when it is missing, or can't be true, which is noted. */
  knownUsage(): Usage | null {
    const judged = this.#usage.judge({
      sentTokens: this.#sentTokens,
      receivedBytes: this.#bytes + this.thoughts.bytes,
      isStale: this.#saidIn > this.#reportedIn,
    });
    if (judged.kind === 'plausible') return judged.usage;
    if (judged.kind === 'missing') return null;
    this.implausible = judged.why;
    this.violations.add('implausible_usage');
    return null;
  }

  /** A finish reason as the upstream wrote it. One that is in no table says that the answer is not whole. */
  finishWith(raw: string): void {
    const unified = finishReasons.get(raw);
    if (unified !== undefined) this.#reason = { raw, unified };
    else this.fail(toolReasons.has(raw) ? toolCalled() : classifyReported(null));
  }

  /**
   * The answer is over: it finishes if the upstream gave a reason, else it was cut off. `marked` tells whether the
   * upstream itself said that it is over, which is as good as a reason where the operator says so.
   */
  conclude(marked: boolean): void {
    if (this.#ending !== null) return;
    if (this.#reason === null) this.violations.add('missing_finish');
    const reason = this.#reason ?? (marked && this.#finishReason === 'optional' ? unsaid : null);
    if (reason === null) return this.fail(failure('truncated'));
    const usage = this.knownUsage();
    if (usage === null && this.implausible === null) this.violations.add('missing_usage');
    this.#ending = { kind: 'finished', reason: reason.unified, rawReason: reason.raw, usage };
  }

  /** The answer failed. */
  fail(failed: Failure): void {
    this.#ending ??= { kind: 'failed', failure: failed, usage: this.knownUsage() };
  }

  /** What has come since the last call; its ending is given out once. */
  take(): AnswerPart {
    const deltas = this.#deltas;
    const ending = this.#isOver ? null : this.#ending;
    this.#deltas = [];
    this.#isOver = this.#ending !== null;
    return { deltas, ending };
  }
}

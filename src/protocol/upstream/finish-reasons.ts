import type { FinishReason } from '../text.ts';

/** The finish reasons of providers by their unified form, in lower case: providers write them in either. */
const known: Readonly<Record<FinishReason, string>> = {
  stop:
    'stop stopped eos eos_token end_turn endturn end_of_turn endoftext stop_sequence stop_token complete completed ' +
    'finished done',
  length:
    'length model_length max_length max_tokens maxtokens max_new_tokens max_output_tokens max_completion_tokens ' +
    'token_limit model_context_window_exceeded error_limit',
  content_filter:
    'content_filter content_filtered guardrail_intervened safety sensitive refusal recitation blocklist ' +
    'prohibited_content spii language model_armor jailbreak image_safety image_recitation image_prohibited_content ' +
    'error_toxic',
};

const unified: ReadonlyMap<string, FinishReason> = new Map(
  (Object.keys(known) as FinishReason[]).flatMap((reason) =>
    known[reason].split(' ').map((raw) => [raw, reason]),
  ),
);

/** What providers write while an answer runs, where others leave the reason out. */
const unset = new Set([
  '',
  ...'null none nil undefined unset not_finished unfinished in_progress running queued finish_reason_unspecified'.split(
    ' ',
  ),
]);

/** Finish reasons of an answer that called a tool although none was offered. */
const toolReasons = new Set(
  'tool_calls tool_call function_call tool_use unexpected_tool_call too_many_tool_calls malformed_function_call'.split(
    ' ',
  ),
);

/** Words that mean, whatever else the name says: the provider withholds the text, because of what it says. */
const certainWords =
  /content[ _-]?filter|safety|unsafe|prohibit|moderat|toxic|harmful|nsfw|inappropriate|jailbreak|recitation|copyright|censor|armou?r|(?:content|usage)[ _-]?polic|(?<!security[ _-]?)polic(?:y|ies)[ _-]?violat|blocked[ _-]by[ _-]\w{0,20}polic/i;

/** Words that mean the same, unless the name has a technical word, too. */
const ambiguousWords =
  /block(?:ed|list)?(?![a-z])|filter|guard|violat|polic(?:y|ies)|refus|sensitiv|injection|flagged|abus/i;

/** Words of technical causes, and of the operator's key or account: `connection_refused` blocks no text. */
const technicalWords =
  /conn|network|socket|proxy|protocol|schema|grammar|json|tool|function|quota|limit|capacity|timeout|auth|memory|cache|schedul|preempt|refused_stream|firewall|address|referrer|api_?key|account|organi[sz]ation|billing|credential|permission|location|country|region|security_?polic|constraint|unique|foreign|null|access/i;

/** How much of a name is looked at, in UTF-16 code units. */
const maxNameChars = 128;

/**
 * What a finish reason means:
 * - a unified reason, for an answer that ended properly. An unknown name that means that the provider withholds the
 *   text is `content_filter`: a text that one provider refuses must not be sent to the next one;
 * - `tool`: the answer called a tool;
 * - `unset`: the answer has not ended;
 * - `unknown`: any other name. The answer may not be complete, and a reason is never invented.
 */
export function readFinishReason(raw: string): FinishReason | 'tool' | 'unset' | 'unknown' {
  const name = raw.slice(0, maxNameChars).toLowerCase();
  const reason = unified.get(name);
  if (reason !== undefined) return reason;
  if (unset.has(name)) return 'unset';
  if (toolReasons.has(name)) return 'tool';
  const isBlocked = certainWords.test(name) || (ambiguousWords.test(name) && !technicalWords.test(name));
  return isBlocked ? 'content_filter' : 'unknown';
}

/** A finish reason as the upstream wrote it, and what it means. */
interface Reason {
  readonly raw: string;
  readonly unified: FinishReason;
}

/** The reason of an answer whose upstream marked the end without giving a finish reason. */
export const unsaid: Reason = { raw: '', unified: 'stop' };

/** How much a finish reason says of missing text: of several, the one that says most is true. */
const missing: Readonly<Record<FinishReason, number>> = { stop: 0, length: 1, content_filter: 2 };

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
    const before = this.reason?.unified ?? 'stop';
    if (missing[reason.unified] >= missing[before]) this.reason = reason;
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

import type { Refusal } from '../../shared/errors.ts';
import { isPlainObject } from '../contract/value-type.ts';
import type { FinishReason, TextEvent, Usage } from '../text.ts';
import { invalidAnswer, reportedFailure, truncatedAnswer } from './failures.ts';

/** More tokens than any answer can have; a larger count is an upstream's mistake. */
const maxTokens = 1e12;

/** More text than any answer has, in UTF-16 code units: an upstream that never stops must not fill the memory. */
const maxAnswerChars = 16_777_216;

/** Finish reasons as providers write them. Any other one is no whole text, and a reason is never invented. */
const finishReasons: ReadonlyMap<string, FinishReason> = new Map([
  ['stop', 'stop'],
  ['STOP', 'stop'],
  ['eos', 'stop'],
  ['eos_token', 'stop'],
  ['end_turn', 'stop'],
  ['stop_sequence', 'stop'],
  ['COMPLETE', 'stop'],
  ['length', 'length'],
  ['model_length', 'length'],
  ['max_tokens', 'length'],
  ['MAX_TOKENS', 'length'],
  ['content_filter', 'content_filter'],
  ['safety', 'content_filter'],
  ['SAFETY', 'content_filter'],
  ['refusal', 'content_filter'],
]);

/** Finish reasons of an answer that called a tool, though none was offered. */
const toolCall = 'a tool call, though no tools were offered';
const toolReasons = new Set(['tool_calls', 'function_call']);

/**
 * What one Chat Completions answer has said so far, in chunks or in one object.
 * A finish reason is only remembered, since text and usage may follow it; the ending is made from what was
 * remembered, so it is never invented.
 */
export class ChatAnswer {
  #reason: { readonly raw: string; readonly unified: FinishReason } | null = null;
  /** The last usage that the upstream reported. */
  usage: Usage | null = null;
  #chars = 0;

  /** Reads a chunk (`delta`) or a whole completion (`message`); returns its text, or why the answer failed. */
  read(frame: unknown, key: 'delta' | 'message'): string | Refusal {
    if (!isPlainObject(frame)) return invalidAnswer('a frame that is not a JSON object');
    this.usage = readUsage(frame['usage']) ?? this.usage;
    if (frame['error'] !== undefined && frame['error'] !== null) return reportedFailure();
    const choice = firstChoice(frame['choices']);
    if (choice === null) return '';
    const reason = choice['finish_reason'];
    if (typeof reason === 'string' && reason !== '') {
      const unified = finishReasons.get(reason);
      if (unified === undefined) return failedReason(reason);
      this.#reason = { raw: reason, unified };
    }
    const part = choice[key];
    if (!isPlainObject(part)) return '';
    if (holdsToolCall(part)) return invalidAnswer(toolCall);
    const text = readText(part['content']) + readText(part['refusal']);
    this.#chars += text.length;
    return this.#chars > maxAnswerChars ? invalidAnswer('an answer that is too long') : text;
  }

  /** The ending, once the body is over: a finish when the upstream gave a reason, else a failure. */
  end(): TextEvent {
    if (this.#reason === null) return this.fail(truncatedAnswer());
    const { raw, unified } = this.#reason;
    return { type: 'finish', reason: unified, rawReason: raw, usage: this.usage };
  }

  /** A failed ending that keeps the usage seen so far, since the operator was billed for it. */
  fail(refusal: Refusal): TextEvent {
    return { type: 'failure', refusal, usage: this.usage };
  }
}

/** A reason that is in no table says that the answer is not whole, whatever comes after it. */
function failedReason(reason: string): Refusal {
  return toolReasons.has(reason) ? invalidAnswer(toolCall) : reportedFailure();
}

/** The choice with index 0: others can't be asked for, and would mix two texts into one. */
function firstChoice(choices: unknown): Record<string, unknown> | null {
  if (!Array.isArray(choices)) return null;
  const first: unknown = choices.find((choice) => isPlainObject(choice) && (choice['index'] ?? 0) === 0);
  return isPlainObject(first) ? first : null;
}

function holdsToolCall(part: Record<string, unknown>): boolean {
  const calls = part['tool_calls'];
  return (Array.isArray(calls) && calls.length > 0) || isPlainObject(part['function_call']);
}

/** Content is a string, null, or a list of parts of which only the text parts are text. */
function readText(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content
    .filter((part) => isPlainObject(part) && part['type'] === 'text' && typeof part['text'] === 'string')
    .map((part) => (part as { text: string }).text)
    .join('');
}

/**
 * The counts of a usage object; `null` when it names none. Output is the larger of what was named and what the total
 * implies, since some providers leave thoughts out of the one but not of the other.
 */
function readUsage(usage: unknown): Usage | null {
  if (!isPlainObject(usage)) return null;
  const input = count(usage['prompt_tokens']);
  const named = count(usage['completion_tokens']);
  const total = count(usage['total_tokens']);
  if (input === null && named === null && total === null) return null;
  const inputTokens = input ?? 0;
  const implied = input === null ? 0 : (total ?? 0) - inputTokens;
  const outputTokens = Math.max(named ?? 0, implied);
  const cached = count(detail(usage, 'prompt_tokens_details', 'cached_tokens')) ?? 0;
  const reasoning = count(detail(usage, 'completion_tokens_details', 'reasoning_tokens')) ?? 0;
  return {
    inputTokens,
    cachedInputTokens: Math.min(inputTokens, cached),
    outputTokens,
    reasoningTokens: Math.min(outputTokens, reasoning),
    totalTokens: inputTokens + outputTokens,
  };
}

function detail(usage: Record<string, unknown>, group: string, name: string): unknown {
  const details = usage[group];
  return isPlainObject(details) ? details[name] : undefined;
}

/** A token count that can be added up; `null` for an upstream's strings, fractions, negatives and absurdities. */
function count(value: unknown): number | null {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= maxTokens
    ? (value as number)
    : null;
}

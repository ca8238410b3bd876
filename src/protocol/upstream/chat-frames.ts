import { refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import { isPlainObject } from '../checks.ts';
import type { FinishReason, TextEvent, Usage } from '../text.ts';

/** More tokens than any answer can have; a larger count is an upstream's mistake. */
const maxTokens = 1e12;

/** Finish reasons as providers write them. One that is missing here counts as `stop`: the upstream did end. */
const finishReasons: Readonly<Record<string, FinishReason>> = {
  length: 'length',
  max_tokens: 'length',
  MAX_TOKENS: 'length',
  content_filter: 'content_filter',
  safety: 'content_filter',
  SAFETY: 'content_filter',
  refusal: 'content_filter',
};

/** Finish reasons that say the answer is not whole, or is no text. */
const failedReasons = new Set(['error', 'abort', 'tool_calls', 'function_call']);

/**
 * What one Chat Completions answer has said so far, in chunks or in one object.
 * A finish reason is only remembered, since text and usage may follow it; the ending is made from what was
 * remembered, so it is never invented.
 */
export class ChatAnswer {
  #reason: string | null = null;
  #usage: Usage | null = null;

  /** Reads a chunk (`delta`) or a whole completion (`message`); returns its text, or why the answer failed. */
  read(frame: unknown, key: 'delta' | 'message'): string | Refusal {
    if (!isPlainObject(frame)) return invalidAnswer('a frame that is not a JSON object');
    this.#usage = readUsage(frame['usage']) ?? this.#usage;
    if (frame['error'] !== undefined && frame['error'] !== null) return upstreamFailure();
    const choice = firstChoice(frame['choices']);
    if (choice === null) return '';
    const reason = choice['finish_reason'];
    if (typeof reason === 'string' && reason !== '') this.#reason = reason;
    if (this.#reason === 'error' || this.#reason === 'abort') return upstreamFailure();
    const part = choice[key];
    if (!isPlainObject(part)) return '';
    if (holdsToolCall(part)) return invalidAnswer('a tool call, though no tools were offered');
    return readText(part['content']) + readText(part['refusal']);
  }

  /** The ending, once the body is over: a finish when the upstream gave a reason, else a failure. */
  end(): TextEvent {
    if (this.#reason === null) return this.fail(truncated());
    if (failedReasons.has(this.#reason))
      return this.fail(invalidAnswer('a tool call, though no tools were offered'));
    return {
      type: 'finish',
      reason: unify(this.#reason),
      rawReason: this.#reason,
      usage: this.#usage,
    };
  }

  /** A failed ending that keeps the usage seen so far, since the operator was billed for it. */
  fail(refusal: Refusal): TextEvent {
    return { type: 'failure', refusal, usage: this.#usage };
  }
}

/** An upstream's word is looked up among the table's own, so that `constructor` is no reason. */
function unify(reason: string): FinishReason {
  return (Object.hasOwn(finishReasons, reason) ? finishReasons[reason] : undefined) ?? 'stop';
}

/** `what` names the fault without quoting the upstream: its bodies may hold prompts or addresses. */
export function invalidAnswer(what: string): Refusal {
  return refuse('upstream_invalid', `The model's provider sent ${what}.`);
}

/** A failure that the upstream itself reported inside an answer. */
export function upstreamFailure(): Refusal {
  return refuse('upstream_error', "The model's provider reported an error while it was answering.");
}

function truncated(): Refusal {
  return refuse(
    'upstream_truncated',
    "The model's provider ended the answer without finishing it; the text so far is not complete.",
  );
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

import { isPlainObject } from '../../shared/parse-json.ts';
import type { UpstreamRequest } from '../text.ts';
import type { Answer } from './answer.ts';
import { errorInBaseResponse } from './base-response.ts';
import { bearer } from './dialect.ts';
import type { Dialect, DialectRequest, Frame, FrameReader, DialectQuirks } from './dialect.ts';
import { invalidAnswer, toolCalled } from './failures.ts';
import { readFinishReason } from './finish-reasons.ts';

/** A stateless frame reader: `Answer` keeps all state. */
const frameReader: FrameReader = { readEvent, takeText: (text, answer) => answer.say(text), readBody };

/** The Chat Completions API of OpenAI, vLLM, llama.cpp and most others. */
export const chatDialect: Dialect = {
  auth: bearer,
  marksEnd: true,
  leastOutputTokens: 1,
  modelsPath: '/models',
  takesStop: () => true,
  writeRequest,
  createFrameReader: () => frameReader,
};

/** Requests usage on every stream, even if the client did not: the record needs it. */
function writeRequest(
  request: UpstreamRequest,
  upstreamModel: string,
  quirks: DialectQuirks,
): DialectRequest {
  const { systemRole, maxTokensField, streamUsage } = quirks;
  const body = {
    model: upstreamModel,
    messages: request.turns.map(({ role, text }) => ({
      role: role === 'system' ? systemRole : role,
      content: text,
    })),
    ...(request.maxOutputTokens === null ? {} : { [maxTokensField]: request.maxOutputTokens }),
    ...(request.stop.length === 0 ? {} : { stop: request.stop }),
    stream: request.stream,
    ...(request.stream && streamUsage === 'ask' ? { stream_options: { include_usage: true } } : {}),
  };
  return { path: '/chat/completions', body: JSON.stringify(body) };
}

function readEvent(frame: Frame, name: string, answer: Answer): void {
  if (name === 'error') return answer.failAsReported(frame['error'] ?? frame);
  readChoice(frame, answer.hasText ? 'delta' : 'either', answer);
}

function readBody(body: Frame, answer: Answer): void {
  readChoice(body, 'message', answer);
  if (!Array.isArray(body['choices'])) answer.fail(invalidAnswer('an object that is no answer'));
}

/**
 * Reads a choice of a chunk (`delta`) or of a whole completion (`message`). Some streams send the whole answer as a
 * `message`, alone or after its deltas: before any text it is the text, after that a repetition.
 */
function readChoice(frame: Frame, key: 'delta' | 'message' | 'either', answer: Answer): void {
  const choice = firstChoice(frame['choices']);
  answer.report(usageIn(frame, choice), 'inside');
  const error = frame['error'] ?? choice?.['error'] ?? errorInEnvelope(frame);
  const reason = choice === null ? null : readReason(choice);
  // A blocked text is the end of its answer, even where it is reported as an error, too.
  if (error !== null && !isBlocked(reason)) return answer.failAsReported(error);
  if (choice === null) return;
  if (reason !== null) answer.finishWith(reason);
  const part = key === 'either' ? (choice['delta'] ?? choice['message']) : choice[key];
  if (!isPlainObject(part)) return;
  if (holdsToolCall(part)) answer.fail(toolCalled());
  answer.think(readThoughts(part));
  for (const content of [part['content'], part['refusal']]) {
    const text = readText(content);
    if (text === null) answer.fail(invalidAnswer('a content that is not text'));
    else answer.say(text);
  }
}

/**
 * The finish reason of a choice; `null` while it runs. OpenRouter sends `error` for reasons that it does not know, with
 * the provider's own one beside it, which may say that the text was blocked.
 */
function readReason(choice: Frame): string | null {
  const reason = choice['finish_reason'] ?? choice['finishReason'];
  if (typeof reason !== 'string' || reason === '') return null;
  const native = choice['native_finish_reason'];
  if (typeof native !== 'string' || readFinishReason(reason) !== 'unknown') return reason;
  return isBlocked(native) ? native : reason;
}

function isBlocked(reason: string | null): boolean {
  return reason !== null && readFinishReason(reason) === 'content_filter';
}

function errorInEnvelope(frame: Frame): unknown {
  return frame['object'] === 'error' ? frame : errorInBaseResponse(frame);
}

/** Groq's older streams have their usage in `x_groq`, and those of Moonshot in the choice. */
function usageIn(frame: Frame, choice: Frame | null): unknown {
  const groq = frame['x_groq'];
  return frame['usage'] ?? (isPlainObject(groq) ? groq['usage'] : null) ?? choice?.['usage'];
}

/** The choice with index 0: others are never requested, and would mix two texts into one. */
function firstChoice(choices: unknown): Frame | null {
  if (!Array.isArray(choices)) return null;
  const first: unknown = choices.find((choice) => isPlainObject(choice) && (choice['index'] ?? 0) === 0);
  return isPlainObject(first) ? first : null;
}

function holdsToolCall(part: Frame): boolean {
  const calls = part['tool_calls'];
  return (Array.isArray(calls) && calls.length > 0) || isPlainObject(part['function_call']);
}

/**
 * Thoughts are in a field of their own, as text, or as a list if there is no text (OpenRouter sends both); or they are
 * parts of the content (Mistral, Databricks).
 */
function readThoughts(part: Frame): string {
  const thought = part['reasoning_content'] || part['reasoning'];
  if (typeof thought === 'string' && thought !== '') return thought;
  const lists = [part['reasoning_details'], part['content']].filter((list) => Array.isArray(list));
  return lists.flat().filter(isPlainObject).map(thoughtIn).join('');
}

function thoughtIn(part: Frame): string {
  const { type, thinking, summary } = part;
  if (type === 'reasoning') return Array.isArray(summary) ? summary.map(textIn).join('') : '';
  const isThought = type === 'reasoning.text' || type === 'reasoning.summary';
  const thought = isThought ? (part['text'] ?? summary) : readText(thinking);
  return typeof thought === 'string' ? thought : '';
}

function textIn(part: unknown): string {
  return isPlainObject(part) && typeof part['text'] === 'string' ? part['text'] : '';
}

/** The text of a content: a string, nothing, or the text parts of a list; `null` for anything else. */
function readText(content: unknown): string | null {
  if (typeof content === 'string') return content;
  if (content === undefined || content === null) return '';
  if (!Array.isArray(content)) return null;
  return content
    .filter((part) => isPlainObject(part) && part['type'] === 'text' && typeof part['text'] === 'string')
    .map((part) => (part as { text: string }).text)
    .join('');
}

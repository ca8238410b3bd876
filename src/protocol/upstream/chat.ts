import { isPlainObject } from '../../shared/parse-json.ts';
import type { UpstreamRequest } from '../text.ts';
import type { Answer } from './answer.ts';
import { firstAlternative, readContent, readThoughts } from './content.ts';
import type { TextTaker } from './content.ts';
import { bearer } from './dialect.ts';
import type { Dialect, DialectRequest, Frame, FrameReader, DialectQuirks } from './dialect.ts';
import { errorAmong, invalidAnswer, toolCalled } from './failures.ts';
import { readFinishReason } from './finish-reasons.ts';
import { SaidText } from './said-text.ts';

/** The Chat Completions API of OpenAI, vLLM, llama.cpp and most others. */
export const chatDialect: Dialect = {
  auth: bearer,
  marksEnd: true,
  leastOutputTokens: 1,
  modelsPath: '/models',
  takesStop: () => true,
  writeRequest,
  createFrameReader: () => new ChatFrameReader(),
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

/** Remembers the text, because some streams say all of it once more, as a `message`. */
class ChatFrameReader implements FrameReader {
  readonly #said = new SaidText();

  readEvent(frame: Frame, name: string, answer: Answer): void {
    if (name === 'error') return answer.failAsReported(frame['error'] ?? frame);
    const choice = readChoice(frame, answer);
    if (choice === null) return;
    const hasText = readPlaces([choice['delta'], choice['text']], answer, this.#takerFor(answer));
    // Perplexity has all of the text so far in every chunk: only the last of these copies is looked at.
    if (!hasText || readReason(choice) !== null) this.#readWhole(choice['message'] ?? null, answer);
  }

  takeText(text: string, answer: Answer): void {
    this.#said.say(text, answer);
  }

  readBody(body: Frame, answer: Answer): void {
    const { message, delta, text } = readChoice(body, answer) ?? {};
    readPlaces([message, delta, text], answer, answer);
    if (!Array.isArray(body['choices'])) answer.fail(invalidAnswer('an object that is no answer'));
  }

  /** Takes a message: all of it where nothing was said before, else what its text has beyond that. */
  #readWhole(message: unknown, answer: Answer): void {
    if (message === null) return;
    if (holdsText(message)) answer.hasMemory = true;
    if (this.#said.length === 0) readPlaces([message], answer, this.#takerFor(answer));
    else this.#said.sayRest(textOf(message), 0, answer);
  }

  #takerFor(answer: Answer): TextTaker {
    return {
      say: (text) => this.#said.say(text, answer),
      think: (thought) => answer.think(thought),
      fail: (failed) => answer.fail(failed),
    };
  }
}

/** The text of a copy; what else it has was there before. */
function textOf(message: unknown): string {
  let whole = '';
  const copy = { say: (text: string) => void (whole += text), think: () => {}, fail: () => {} };
  readText(message, copy);
  return whole;
}

/** Reads what a choice of a chunk or of a whole completion has beside its text. `null` if it has no more. */
function readChoice(frame: Frame, answer: Answer): Frame | null {
  const choice = firstAlternative(frame['choices'], answer);
  answer.report(usageIn(frame, choice), 'inside');
  const error = errorAmong(frame['error'], choice?.['error'], errorInEnvelope(frame));
  const reason = choice === null ? null : readReason(choice);
  // A blocked text is the end of its answer, even where it is reported as an error, too.
  if (error !== null && !isBlocked(reason)) {
    answer.failAsReported(error);
    return null;
  }
  if (reason !== null) answer.finishWith(reason);
  return choice;
}

/** Reads the first of these places that has text; returns whether any has. Servers of completions have it in the choice. */
function readPlaces(places: readonly unknown[], answer: Answer, taker: TextTaker): boolean {
  return places.some((part) => {
    if ((part ?? null) === null) return false;
    if (isPlainObject(part)) readBeside(part, answer);
    else answer.noteContent();
    readText(part, taker);
    return holdsText(part);
  });
}

/** The fields of a message or a delta in which text stands, and those of what is not text. */
const textFields = ['content', 'text', 'refusal'] as const;
const otherFields = ['audio', 'images'] as const;

/** Thoughts are in fields of their own, of which the first with text counts (OpenRouter has several), or in the content. */
function readBeside(part: Frame, answer: Answer): void {
  if (holdsToolCall(part)) answer.fail(toolCalled());
  readThoughts(part['reasoning_content'] || part['reasoning'] || part['reasoning_details'], answer);
  if (textFields.some((name) => part[name] !== undefined)) answer.noteContent();
  if (otherFields.some((name) => (part[name] ?? null) !== null)) answer.violations.add('skipped_content');
}

function readText(part: unknown, taker: TextTaker): void {
  if (!isPlainObject(part)) return readContent(part, taker);
  readContent(part['content'] ?? part['text'], taker);
  readContent(part['refusal'], taker);
}

function holdsText(part: unknown): boolean {
  if (!isPlainObject(part)) return part !== '';
  return textFields.some((name) => (part[name] ?? '') !== '' && !isEmptyList(part[name]));
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
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

function holdsToolCall(part: Frame): boolean {
  const calls = part['tool_calls'];
  return (Array.isArray(calls) && calls.length > 0) || isPlainObject(part['function_call']);
}

/** What the codes of MiniMax mean, in words by which errors are classified; others are faults of its own. */
const meanings: ReadonlyMap<unknown, string> = new Map([
  [1001, 'timeout'],
  [1002, 'rate_limit_exceeded'],
  [1004, 'authentication_error'],
  [1008, 'billing_error'],
  [1026, 'content_filter'],
  [1027, 'content_filter'],
  [1039, 'rate_limit_exceeded'],
  [1041, 'rate_limit_exceeded'],
  [2013, 'invalid_request_error'],
  [2045, 'rate_limit_exceeded'],
  [2049, 'authentication_error'],
  [2056, 'rate_limit_exceeded'],
]);

/** The statuses of meanings that have none in their words. */
const statuses: Readonly<Record<string, number>> = { billing_error: 402 };

/**
 * The error of a frame's `base_resp`: MiniMax reports errors there, under a good status, without choices or beside them.
 * `null` where it reports a success, and for a frame without one.
 */
function errorInBaseResponse({ base_resp: found }: Frame): object | null {
  if (!isPlainObject(found)) return null;
  const { status_code: number, status_msg: message } = found;
  if (typeof number !== 'number' || number === 0) return null;
  const code = meanings.get(number) ?? `base_resp_${number}`;
  return { code, message, ...(statuses[code] === undefined ? {} : { status: statuses[code] }) };
}

import { isPlainObject } from '../../shared/parse-json.ts';
import type { UpstreamRequest } from '../text.ts';
import type { Answer } from './answer.ts';
import { notText, readThoughts } from './content.ts';
import { bearer } from './dialect.ts';
import type { Dialect, DialectRequest, Frame, FrameReader } from './dialect.ts';
import { errorAmong, failure, invalidAnswer, toolCalled } from './failures.ts';
import { readFinishReason } from './finish-reasons.ts';
import { SaidParts } from './said-text.ts';
import type { ClosedKind } from './said-text.ts';

/** OpenAI refuses a smaller output cap. A cap is a hint, so a smaller one is raised rather than refused. */
const minOutputTokens = 16;

/** Events that repeat what others say, or tell of tools that the provider runs itself. */
const silentEvents =
  /^(?:response\.(?:created|queued|in_progress|content_part\.added|output_text\.annotation\.added|reasoning_\w+\.(?:added|done)|(?:web_search|file_search|code_interpreter|image_generation|mcp)_\w+\.\w+|reasoning\.\w+)|ping|keepalive|rate_limits\.updated)$/;

/** The statuses of a response that its provider ended as failed. Others, such as `queued`, are no ends at all. */
const failedStatuses = new Set(['failed', 'cancelled']);

/** The Responses API of OpenAI, Azure, xAI, llama.cpp and others. */
export const responsesDialect: Dialect = {
  auth: bearer,
  marksEnd: true,
  leastOutputTokens: minOutputTokens,
  modelsPath: '/models',
  takesStop: () => false,
  writeRequest,
  createFrameReader: () => new ResponsesFrameReader(),
};

/**
 * Asks the provider to store nothing: every request carries its whole history. Items have a `type`, because llama.cpp
 * refuses an assistant's turn without one.
 */
function writeRequest(request: UpstreamRequest, upstreamModel: string): DialectRequest {
  const cap = request.maxOutputTokens;
  const body = {
    model: upstreamModel,
    input: request.turns.map(({ role, text }) => ({ type: 'message', role, content: text })),
    ...(cap === null ? {} : { max_output_tokens: Math.max(cap, minOutputTokens) }),
    stream: request.stream,
    store: false,
  };
  return { path: '/responses', body: JSON.stringify(body) };
}

/**
 * Reads only deltas, whole parts and the response object of the last event. Everything else differs between providers:
 * ids change, positions are missing, items are never opened.
 */
class ResponsesFrameReader implements FrameReader {
  readonly #said = new SaidParts();

  readEvent(frame: Frame, name: string, answer: Answer): void {
    const type = typeof frame['type'] === 'string' ? frame['type'] : name;
    switch (type) {
      case 'response.output_text.delta':
      case 'response.refusal.delta':
        return this.#sayDelta(frame['delta'], answer);
      case 'response.output_text.done':
      case 'response.refusal.done':
        return this.#close('text', stringOf(frame['text'] ?? frame['refusal']), answer);
      case 'response.reasoning_text.delta':
      case 'response.reasoning_summary_text.delta':
        return readThoughts(frame['delta'], answer);
      case 'response.content_part.done':
        return this.#close('part', textOfClosed(frame['part'], answer), answer);
      case 'response.output_item.added':
        return readItem(frame['item'], answer);
      case 'response.output_item.done':
        readItem(frame['item'], answer);
        return this.#close('item', textOfMessage(frame['item'], answer), answer);
      case 'response.completed':
      case 'response.incomplete':
      case 'response.failed':
      case 'response.cancelled':
        return this.#readLast(frame, type.slice('response.'.length), answer);
      case 'error':
        return answer.failAsReported(frame['error'] ?? frame);
      default:
        // An error event may have the error itself as its data, whose type is that of the error.
        if (errorAmong(frame['error']) !== null || name === 'error')
          answer.failAsReported(frame['error'] ?? frame);
        else if (!silentEvents.test(type)) answer.violations.add('skipped_content');
    }
  }

  takeText(text: string, answer: Answer): void {
    this.#said.say(text, answer);
  }

  readBody(body: Frame, answer: Answer): void {
    this.#readResponse(body, statusOf(body), answer);
  }

  /** Some providers leave the status out of the object and give it only as the event's name. */
  #readLast(frame: Frame, said: string, answer: Answer): void {
    const response = isPlainObject(frame['response']) ? frame['response'] : {};
    const status = statusOf(response) ?? said;
    // A status of a running response in the event that completes it is a leftover: the event says that it has ended.
    const isRunning = readFinishReason(status) === 'unset';
    if (said === 'completed' && isRunning) answer.violations.add('inconsistent_end');
    this.#readResponse(response, said === 'completed' && !isRunning ? status : said, answer);
    answer.conclude('given');
  }

  #readResponse(response: Frame, status: string | null, answer: Answer): void {
    answer.report(response['usage'], 'inside');
    const { output, error } = response;
    if (errorAmong(error) !== null) return answer.failAsReported(error);
    for (const item of Array.isArray(output) ? output : []) readItem(item, answer);
    if (answer.thoughts.chars === 0) answer.think(textOf(output, 'reasoning', answer));
    this.#said.sayRest(textOf(output, 'message', answer), 0, answer);
    this.#readStatus(response, status, answer);
  }

  #readStatus(response: Frame, status: string | null, answer: Answer): void {
    if (status === null) return answer.fail(invalidAnswer('an object that is no answer'));
    const meaning = readFinishReason(status);
    if (status === 'completed' || meaning === 'stop') this.#complete(response, answer);
    else if (status === 'incomplete') answer.finishWith(incompleteReason(response));
    else if (meaning === 'content_filter' || meaning === 'length') answer.finishWith(status);
    else if (failedStatuses.has(status)) answer.failAsReported(response['error']);
    else answer.fail(invalidAnswer('a response whose status is not that of an ended one'));
  }

  /** Ends a response that calls itself completed, unless its own fields say that it was cut off. */
  #complete(response: Frame, answer: Answer): void {
    const { output } = response;
    if (isPlainObject(response['incomplete_details'])) answer.finishWith(incompleteReason(response));
    else if (Array.isArray(output) && output.some(isCutOff))
      answer.fail(
        failure('truncated', { detail: 'the answer calls itself completed, but a part of it is not' }),
      );
    else answer.finishWith('stop');
  }

  #close(by: ClosedKind, copy: string | null, answer: Answer): void {
    if (copy !== null) this.#said.close(by, copy, answer);
  }

  #sayDelta(delta: unknown, answer: Answer): void {
    answer.noteContent();
    const text = isPlainObject(delta) ? (delta['text'] ?? delta['value'] ?? delta['content']) : delta;
    if (typeof text === 'string') this.#said.say(text, answer);
    else if ((delta ?? null) !== null) answer.fail(notText());
  }
}

function isCutOff(item: unknown): boolean {
  return isPlainObject(item) && item['type'] === 'message' && item['status'] === 'incomplete';
}

/** An event that closes a text without repeating it closes it all the same. */
function stringOf(copy: unknown): string {
  return typeof copy === 'string' ? copy : '';
}

function statusOf({ status }: Frame): string | null {
  return typeof status === 'string' ? status : null;
}

/** Why an answer is incomplete. A missing reason is one that no table has, so the answer fails. */
function incompleteReason(response: Frame): string {
  const details = response['incomplete_details'];
  return isPlainObject(details) && typeof details['reason'] === 'string' ? details['reason'] : 'incomplete';
}

/** Output items without text that need no reaction from a client: thoughts, and tools that the provider runs itself. */
const silentItems = new Set([
  'reasoning',
  'compaction',
  'web_search_call',
  'file_search_call',
  'code_interpreter_call',
  'image_generation_call',
  'mcp_list_tools',
  'mcp_call',
  // Perplexity's
  'search_results',
  'fetch_url_results',
]);

/** Fails the answer for an item that is neither text nor silent: the client would have to react, and can't. */
function readItem(item: unknown, answer: Answer): void {
  if (!isPlainObject(item)) return;
  const { type } = item;
  if (type === 'message' || type === 'reasoning') answer.noteContent();
  if (typeof type === 'string' && type !== 'message' && !silentItems.has(type)) answer.fail(toolCalled());
}

/** The text of all items of one type: a message's parts, or thoughts with their summaries. */
function textOf(output: unknown, type: 'message' | 'reasoning', answer: Answer): string {
  if (typeof output === 'string' && type === 'message') return output;
  if (!Array.isArray(output)) return '';
  return output
    .filter((item) => isPlainObject(item) && item['type'] === type)
    .flatMap(({ content, summary }: Frame) => [content, summary])
    .flatMap((parts: unknown) => (Array.isArray(parts) ? parts : [parts ?? '']))
    .map((part: unknown) => textOfPart(part, answer))
    .join('');
}

/** The text of an item that is a message; `null` for any other. */
function textOfMessage(item: unknown, answer: Answer): string | null {
  const isMessage = isPlainObject(item) && item['type'] === 'message';
  return isMessage ? textOf([item], 'message', answer) : null;
}

/** The text of a part; `null` for one of thoughts. */
function textOfClosed(part: unknown, answer: Answer): string | null {
  const isText = isPlainObject(part) && /^(?:output_text|refusal)$/.test(String(part['type']));
  return isText ? textOfPart(part, answer) : null;
}

function textOfPart(part: unknown, answer: Answer): string {
  const text = isPlainObject(part) ? (part['text'] ?? part['refusal']) : part;
  if (typeof text === 'string') return text;
  answer.fail(notText());
  return '';
}

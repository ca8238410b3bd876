import { isPlainObject } from '../../shared/parse-json.ts';
import { KeptText } from '../kept-text.ts';
import type { UpstreamRequest } from '../text.ts';
import type { Answer } from './answer.ts';
import { bearer } from './dialect.ts';
import type { Dialect, DialectRequest, Frame, FrameReader } from './dialect.ts';
import { failure, invalidAnswer, toolCalled } from './failures.ts';
import { readFinishReason } from './finish-reasons.ts';

/** OpenAI refuses a smaller output cap. A cap is a hint, so a smaller one is raised rather than refused. */
const minOutputTokens = 16;

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
  readonly #said = new KeptText();
  /** The index in `#said` at which the current part begins. */
  #partStart = 0;

  readEvent(frame: Frame, name: string, answer: Answer): void {
    const type = typeof frame['type'] === 'string' ? frame['type'] : name;
    switch (type) {
      case 'response.output_text.delta':
      case 'response.refusal.delta':
        return this.#say(frame['delta'], answer);
      case 'response.output_text.done':
      case 'response.refusal.done':
        return this.#closePart(frame['text'] ?? frame['refusal'], answer);
      case 'response.reasoning_text.delta':
      case 'response.reasoning_summary_text.delta':
        return answer.think(frame['delta']);
      case 'response.output_item.added':
      case 'response.output_item.done':
        return readItem(frame['item'], answer);
      case 'response.completed':
      case 'response.incomplete':
      case 'response.failed':
      case 'response.cancelled':
        return this.#readLast(frame, type.slice('response.'.length), answer);
      case 'error':
        return answer.failAsReported(frame['error'] ?? frame);
      default:
        // An error event may have the error itself as its data, whose type is that of the error.
        if (isPlainObject(frame['error']) || name === 'error') answer.failAsReported(frame['error'] ?? frame);
    }
  }

  takeText(text: string, answer: Answer): void {
    this.#say(text, answer);
  }

  readBody(body: Frame, answer: Answer): void {
    this.#readResponse(body, statusOf(body), answer);
  }

  /** Some providers leave the status out of the object and give it only as the event's name. */
  #readLast(frame: Frame, said: string, answer: Answer): void {
    const response = isPlainObject(frame['response']) ? frame['response'] : {};
    this.#readResponse(response, said === 'completed' ? (statusOf(response) ?? said) : said, answer);
    answer.conclude(true);
  }

  #readResponse(response: Frame, status: string | null, answer: Answer): void {
    answer.report(response['usage'], 'inside');
    const { output, error } = response;
    if (isPlainObject(error)) return answer.failAsReported(error);
    for (const item of Array.isArray(output) ? output : []) readItem(item, answer);
    if (answer.thoughts.chars === 0) answer.think(textOf(output, 'reasoning'));
    this.#sayRest(textOf(output, 'message'), this.#said.toString(), answer);
    if (status === 'completed') this.#complete(response, answer);
    else if (status === 'incomplete') answer.finishWith(incompleteReason(response));
    else if (status === null) answer.fail(invalidAnswer('an object that is no answer'));
    else if (readFinishReason(status) === 'content_filter') answer.finishWith(status);
    else if (failedStatuses.has(status)) answer.failAsReported(error);
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

  #say(delta: unknown, answer: Answer): void {
    if (typeof delta !== 'string') return;
    this.#said.add(delta);
    answer.say(delta);
  }

  /** Takes a part's whole text, which follows its deltas. */
  #closePart(whole: unknown, answer: Answer): void {
    answer.noteMemory();
    if (typeof whole === 'string') this.#sayRest(whole, this.#said.toString().slice(this.#partStart), answer);
    this.#partStart = this.#said.length;
  }

  /** Compares a whole text with the streamed one: text of lost deltas is added; a different text fails the answer. */
  #sayRest(whole: string, said: string, answer: Answer): void {
    if (whole === '' || whole === said) return;
    if (whole.startsWith(said)) this.#say(whole.slice(said.length), answer);
    else answer.fail(invalidAnswer('a text that is not the one it streamed'));
  }
}

/** Fails the answer for an item that is neither text nor silent: the client would have to react, and can't. */
function readItem(item: unknown, answer: Answer): void {
  if (!isPlainObject(item)) return;
  const { type } = item;
  if (typeof type === 'string' && type !== 'message' && !silentItems.has(type)) answer.fail(toolCalled());
}

function isCutOff(item: unknown): boolean {
  return isPlainObject(item) && item['type'] === 'message' && item['status'] === 'incomplete';
}

function statusOf({ status }: Frame): string | null {
  return typeof status === 'string' ? status : null;
}

/** Why an answer is incomplete. A missing reason is '', which no table has, so the answer fails. */
function incompleteReason(response: Frame): string {
  const details = response['incomplete_details'];
  return isPlainObject(details) && typeof details['reason'] === 'string' ? details['reason'] : '';
}

/** The text of all items of one type: a message's parts, or thoughts with their summaries. */
function textOf(output: unknown, type: 'message' | 'reasoning'): string {
  if (!Array.isArray(output)) return '';
  return output
    .filter((item) => isPlainObject(item) && item['type'] === type)
    .flatMap(({ content, summary }: Frame) => [content, summary])
    .flatMap((parts) => (Array.isArray(parts) ? parts : []))
    .map((part) => (isPlainObject(part) ? (part['text'] ?? part['refusal']) : null))
    .filter((text) => typeof text === 'string')
    .join('');
}

import { isRefusal } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import { parseJson } from '../../shared/parse-json.ts';
import { createSseParser } from '../sse.ts';
import type { SseEvent } from '../sse.ts';
import type { TextEvent, TextRequest, Usage } from '../text.ts';
import { ChatAnswer } from './chat-answer.ts';
import type { Dialect, DialectRequest, UpstreamReader } from './dialect.ts';
import { invalidAnswer, reportedFailure } from './failures.ts';

/** The largest whole answer that is read, in bytes. */
const maxResultBytes = 16 * 1_048_576;

/** Chat Completions, as OpenAI, vLLM, llama.cpp and most others speak it. */
export const chatDialect: Dialect = {
  writeRequest,
  createStreamReader: () => new ChatStreamReader(),
  createResultReader: () => new ChatResultReader(),
};

/** Usage is always asked for, whatever the client wants to see: the record needs it. */
function writeRequest(request: TextRequest, upstreamModel: string): DialectRequest {
  const body = {
    model: upstreamModel,
    messages: request.turns.map(({ role, text }) => ({ role, content: text })),
    ...(request.maxOutputTokens === null ? {} : { max_tokens: request.maxOutputTokens }),
    stream: request.stream,
    ...(request.stream ? { stream_options: { include_usage: true } } : {}),
  };
  return { path: '/chat/completions', body: JSON.stringify(body) };
}

class ChatStreamReader implements UpstreamReader {
  readonly #decoder = new TextDecoder();
  readonly #parser = createSseParser();
  readonly #answer = new ChatAnswer();
  #ended = false;

  get usage(): Usage | null {
    return this.#answer.usage;
  }

  push(bytes: Uint8Array): TextEvent[] {
    const events: TextEvent[] = [];
    if (this.#ended) return events;
    this.#readAll(this.#parser.push(this.#decoder.decode(bytes, { stream: true })), events);
    return events;
  }

  end(): TextEvent[] {
    const events: TextEvent[] = [];
    if (this.#ended) return events;
    this.#readAll([...this.#parser.push(this.#decoder.decode()), ...this.#parser.end()], events);
    if (!this.#ended) this.#conclude(this.#answer.end(), events);
    return events;
  }

  #readAll(frames: readonly SseEvent[], events: TextEvent[]): void {
    for (const frame of frames) {
      this.#read(frame, events);
      if (this.#ended) return;
    }
    if (this.#parser.overflowed) this.#fail(invalidAnswer('an event of over 1 MiB'), events);
  }

  #read({ name, data }: SseEvent, events: TextEvent[]): void {
    if (data === '') return;
    if (data.startsWith('[DONE]')) return this.#conclude(this.#answer.end(), events);
    if (name === 'error') return this.#fail(reportedFailure(), events);
    const frame = parseJson(data);
    if (frame === undefined) return this.#fail(invalidAnswer('an event that is not JSON'), events);
    const text = this.#answer.read(frame, 'delta');
    if (isRefusal(text)) this.#fail(text, events);
    else if (text !== '') events.push({ type: 'delta', text });
  }

  #fail(refusal: Refusal, events: TextEvent[]): void {
    this.#conclude(this.#answer.fail(refusal), events);
  }

  #conclude(ending: TextEvent, events: TextEvent[]): void {
    this.#ended = true;
    events.push(ending);
  }
}

/** Reads a whole completion, and gives it out as the same events that a stream of it would have given. */
class ChatResultReader implements UpstreamReader {
  readonly #decoder = new TextDecoder();
  readonly #answer = new ChatAnswer();
  #body = '';
  #bytes = 0;
  #ended = false;

  get usage(): Usage | null {
    return this.#answer.usage;
  }

  push(bytes: Uint8Array): TextEvent[] {
    if (this.#ended) return [];
    this.#bytes += bytes.length;
    if (this.#bytes > maxResultBytes) return this.#conclude(invalidAnswer('an answer of over 16 MiB'));
    this.#body += this.#decoder.decode(bytes, { stream: true });
    return [];
  }

  end(): TextEvent[] {
    if (this.#ended) return [];
    const frame = parseJson(this.#body + this.#decoder.decode());
    if (frame === undefined) return this.#conclude(invalidAnswer('a body that is not JSON'));
    const text = this.#answer.read(frame, 'message');
    if (isRefusal(text)) return this.#conclude(text);
    this.#ended = true;
    const ending = this.#answer.end();
    return text === '' ? [ending] : [{ type: 'delta', text }, ending];
  }

  #conclude(refusal: Refusal): TextEvent[] {
    this.#ended = true;
    this.#body = '';
    return [this.#answer.fail(refusal)];
  }
}

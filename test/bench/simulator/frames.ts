import type { SimulatorSettings } from './settings.ts';
import { writeStamp, writeTimes } from './times.ts';
import type { UpstreamTimes } from './times.ts';

/** The bytes of a simulated stream: whole HTTP chunks, made once for all streams with the same settings. */
export interface StreamBytes {
  /** The head of the answer and the chunk with the role. */
  readonly opening: Buffer;
  /** The first event with text, for streams that send it alone. */
  readonly text: Buffer;
  /** The writes of a stream that is sent as fast as it is taken; without the opening. */
  readonly writes: readonly Buffer[];
  /** Finish reason, usage, `[DONE]` and the last chunk. */
  readonly ending: Buffer;
}

const streamHead =
  'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\n' +
  'x-request-id: req_5f0c3b9ad1e24c6f\r\ntransfer-encoding: chunked\r\n\r\n';

/** Pieces of text as models send them, with characters that JSON escapes and others that UTF-8 makes longer. */
const pieces = ['The', ' first', ' answer', ' is', ' "yes"', ',\n', ' na\u00efve', ' or', ' not', '.'];

const usage = {
  prompt_tokens: 24,
  completion_tokens: 180,
  total_tokens: 204,
  prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0 },
};

/** A chunk of Chat Completions with the fields that OpenAI sends. */
function chunk(choices: readonly object[], used: object | null): string {
  const fields = {
    id: 'chatcmpl-Cq3vXyZ0aB7LkT9wQeR2uI5oP8sD1',
    object: 'chat.completion.chunk',
    created: 1_763_800_000,
    model: 'simulated-2026-11-01',
    service_tier: 'default',
    system_fingerprint: 'fp_3a1c9e77b2',
    choices,
    usage: used,
  };
  return `data: ${JSON.stringify(fields)}\n\n`;
}

function choice(delta: object, reason: string | null): object {
  return { index: 0, delta, logprobs: null, finish_reason: reason };
}

/** One event of a stream: some text. */
export function textEvent(index: number): string {
  return chunk([choice({ content: pieces[index % pieces.length] }, null)], null);
}

/** The first text of a stream whose settings ask for times, as an HTTP chunk. */
export function timedText(times: UpstreamTimes): Buffer {
  return framed(chunk([choice({ content: writeTimes(times) }, null)], null));
}

/** An event with text before and after its content. */
const [beforeContent = '', afterContent = ''] = chunk([choice({ content: '@' }, null)], null).split('@');

/** A later text of a stream whose settings ask for the time of each, as an HTTP chunk of ASCII alone. */
export function stampedText(textMs: number): string {
  const event = beforeContent + writeStamp(textMs) + afterContent;
  return `${event.length.toString(16)}\r\n${event}\r\n`;
}

/** Some text as an HTTP chunk. */
function framed(text: string): Buffer {
  const bytes = Buffer.from(text);
  return Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]);
}

function makeStream({ textEvents, perWrite }: SimulatorSettings): StreamBytes {
  const role = framed(chunk([choice({ role: 'assistant', content: '', refusal: null }, null)], null));
  const texts = Array.from({ length: textEvents }, (_, index) => framed(textEvent(index)));
  const writes = Array.from({ length: Math.ceil(textEvents / perWrite) }, (_, index) =>
    Buffer.concat(texts.slice(index * perWrite, (index + 1) * perWrite)),
  );
  const last = [chunk([choice({}, 'stop')], null), chunk([], usage), 'data: [DONE]\n\n'];
  return {
    opening: Buffer.concat([Buffer.from(streamHead), role]),
    text: texts[0] ?? role,
    writes,
    ending: Buffer.concat([...last.map(framed), Buffer.from('0\r\n\r\n')]),
  };
}

/** The body of a whole answer with a text of so many bytes. */
export function wholeBody(bodyBytes: number): string {
  const message = {
    role: 'assistant',
    content: pieces
      .join('')
      .repeat(Math.ceil(bodyBytes / 40))
      .slice(0, bodyBytes),
    refusal: null,
    annotations: [],
  };
  return JSON.stringify({
    id: 'chatcmpl-Cq3vXyZ0aB7LkT9wQeR2uI5oP8sD1',
    object: 'chat.completion',
    created: 1_763_800_000,
    model: 'simulated-2026-11-01',
    choices: [{ index: 0, message, logprobs: null, finish_reason: 'stop' }],
    usage,
    service_tier: 'default',
    system_fingerprint: 'fp_3a1c9e77b2',
  });
}

function makeWhole({ bodyBytes }: SimulatorSettings): Buffer {
  const body = wholeBody(bodyBytes);
  return Buffer.from(
    'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-request-id: req_5f0c3b9ad1e24c6f\r\n' +
      `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

/** Keeps what a function makes of settings, so that answering costs no more than writing bytes. */
function remembered<Made>(make: (settings: SimulatorSettings) => Made) {
  const made = new Map<string, Made>();
  return (settings: SimulatorSettings): Made => {
    const name = JSON.stringify(settings);
    const found = made.get(name) ?? make(settings);
    made.set(name, found);
    return found;
  };
}

export const streamOf = remembered(makeStream);
export const wholeOf = remembered(makeWhole);

const errorBody = JSON.stringify({ error: { message: 'The model is overloaded.', type: 'server_error' } });

/** The answer of an upstream that fails before its first text. */
export const failedAnswer = Buffer.from(
  'HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\n' +
    `content-length: ${errorBody.length}\r\n\r\n${errorBody}`,
);

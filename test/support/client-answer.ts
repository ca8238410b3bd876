import { parseFrames } from './parse-frames.ts';
import type { TestGateway } from './test-gateway.ts';

/** An answer as a client reads it that implements only the documented protocol. */
export interface ClientAnswer {
  readonly ending: 'stop' | 'length' | 'content_filter' | 'failure';
  readonly text: string;
  readonly usage: readonly [number, number] | null;
  /** The code of the error in the answer, if it has one. */
  readonly code: string | null;
}

const silent: ClientAnswer = { ending: 'failure', text: '', usage: null, code: null };
const paths = { chat: '/v1/chat/completions', responses: '/v1/responses' } as const;

/** Sends a question and reads the answer in the client's protocol, streamed or whole. */
export async function readAnswer(
  gateway: TestGateway,
  protocol: 'chat' | 'responses',
  stream: boolean,
  question = 'x',
  model = 'small',
): Promise<ClientAnswer> {
  const shown = stream ? { stream_options: { include_usage: true } } : {};
  const asked =
    protocol === 'chat' ? { messages: [{ role: 'user', content: question }], ...shown } : { input: question };
  const response = await gateway.post(paths[protocol], { model, stream, ...asked });
  let text = '';
  try {
    const decoder = new TextDecoder();
    for await (const part of response.body ?? []) text += decoder.decode(part, { stream: true });
  } catch {
    // A chat stream fails by a broken connection; the text before it is read all the same.
  }
  return readAnswerBody(protocol, stream && response.status === 200, text);
}

/** Reads the body of an answer: a stream, or one whole body, which may be an error. */
export function readAnswerBody(
  protocol: 'chat' | 'responses',
  isStream: boolean,
  text: string,
): ClientAnswer {
  if (isStream) return readStream(protocol, text);
  const body = JSON.parse(text);
  if (body.error) return { ...silent, code: body.error.code };
  return protocol === 'chat' ? readCompletion(body) : readResponse(body);
}

/** Reads a stream as far as it arrived, without the comments that are sent while nothing else is. */
export function readStream(protocol: 'chat' | 'responses', text: string): ClientAnswer {
  const frames = text.replaceAll(/^: keep-alive\n+/gm, '');
  return protocol === 'chat' ? readChunks(frames) : readEvents(frames);
}

/* eslint-disable typescript/no-explicit-any -- tests check what they read by their expectations */
type Json = any;

function readChunks(text: string): ClientAnswer {
  const frames: Json[] = parseFrames(text).map(({ data }) => data);
  const choices = frames.flatMap((frame) => frame.choices ?? []);
  const error = frames.find((frame) => frame.error)?.error;
  const usage = frames.find((frame) => frame.usage)?.usage;
  const reason = choices.find((choice) => choice.finish_reason !== null)?.finish_reason;
  const isDone = frames.at(-1) === '[DONE]' && error === undefined;
  return {
    ending: isDone ? reason : 'failure',
    text: choices.map((choice) => choice.delta.content ?? '').join(''),
    usage: usage ? [usage.prompt_tokens, usage.completion_tokens] : null,
    code: error?.code ?? null,
  };
}

function readEvents(text: string): ClientAnswer {
  const events: Json[] = parseFrames(text).map(({ data }) => data);
  const deltas = events.filter(({ type }) => type === 'response.output_text.delta');
  const last = events.at(-1);
  const said = deltas.map(({ delta }) => delta).join('');
  const ended = /^response\.(completed|incomplete)$/.test(last?.type) ? readResponse(last.response) : silent;
  if (ended.ending !== 'failure' && ended.text !== said)
    throw new Error('the final text differs from the streamed text');
  return { ...ended, text: said, code: events.find(({ type }) => type === 'error')?.error.code ?? null };
}

function readCompletion({ choices, usage }: Json): ClientAnswer {
  const [{ message, finish_reason: ending }] = choices;
  return {
    ending,
    text: message.content,
    usage: usage ? [usage.prompt_tokens, usage.completion_tokens] : null,
    code: null,
  };
}

function readResponse({ status, incomplete_details: details, output, usage }: Json): ClientAnswer {
  const reasons: Record<string, ClientAnswer['ending']> = {
    max_output_tokens: 'length',
    content_filter: 'content_filter',
  };
  return {
    ending: status === 'completed' ? 'stop' : (reasons[details.reason] ?? 'failure'),
    text: output[0].content[0].text,
    usage: usage ? [usage.input_tokens, usage.output_tokens] : null,
    code: null,
  };
}

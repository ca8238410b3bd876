import type OpenAI from 'openai';
import { questionHeader } from './cutting-proxy.ts';

/** A question, and how it is asked. */
export interface Question {
  readonly number: number;
  /** Which of the clients that ask it at a time this one is. */
  readonly asker: number;
  readonly prompt: string;
  readonly protocol: 'chat' | 'responses';
  readonly stream: boolean;
}

/** Where questions are asked. */
export interface Asked {
  readonly url: string;
  readonly secret: string;
  /** Whether they are sent under a name. */
  readonly isNamed: boolean;
  /** When one request is given up, in milliseconds, by the clients that have a setting for it; `null` leaves it to them. */
  readonly requestMs: number | null;
}

/** Asks by one client; resolves with the text of the answer, as it was read to its end. */
export type AskBy = (question: Question, asked: Asked) => Promise<string>;

/** An HTTP error, with its code. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError';
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(`${status} ${code}: ${message}`);
    this.code = code;
  }
}

/** What is thrown where a client does not say that an answer is incomplete, and its application sees it. */
export const brokeOff = 'the stream broke off';

/** The name of a question. */
export function nameOf(question: number): string {
  return `question-${question}`;
}

/** The headers of a question, which the application gives to its client. */
export function headersOf({ number, asker }: Question, { isNamed }: Asked): Record<string, string> {
  return {
    [questionHeader]: `${number}-${asker}`,
    ...(isNamed ? { 'idempotency-key': nameOf(number) } : {}),
  };
}

/** Asks without a library, and never a second time; rejects with `RefusedError` for an HTTP error, as all who ask do. */
export async function askRaw(question: Question, asked: Asked): Promise<string> {
  const { prompt: content, protocol, stream } = question;
  const isChat = protocol === 'chat';
  const said = isChat ? { messages: [{ role: 'user', content }] } : { input: content };
  const response = await fetch(`${asked.url}/v1/${isChat ? 'chat/completions' : 'responses'}`, {
    method: 'POST',
    headers: {
      ...headersOf(question, asked),
      authorization: `Bearer ${asked.secret}`,
      'content-type': 'application/json',
    },
    body: JSON.stringify({ model: 'small', stream, ...said }),
    signal: asked.requestMs === null ? null : AbortSignal.timeout(asked.requestMs),
  });
  const body = await response.text();
  if (response.status !== 200) {
    const { error } = JSON.parse(body) as { error: { code: string; message: string } };
    throw new RefusedError(response.status, error.code, error.message);
  }
  return textOf(body, question);
}

/** The text of an answer's body; throws where it is a stream without its end. */
export function textOf(body: string, { protocol, stream }: Pick<Question, 'protocol' | 'stream'>): string {
  return stream ? textOfEvents(body, protocol) : textOfAnswer(JSON.parse(body) as WholeAnswer);
}

interface WholeAnswer {
  readonly choices?: readonly { readonly message: { readonly content: string } }[];
  readonly output?: readonly { readonly content: readonly { readonly text: string }[] }[];
}

function textOfAnswer({ choices, output }: WholeAnswer): string {
  return choices?.[0]?.message.content ?? output?.[0]?.content[0]?.text ?? '';
}

interface StreamEvent {
  readonly type?: string;
  readonly delta?: string;
  readonly choices?: readonly {
    readonly delta: { readonly content?: string };
    readonly finish_reason: string | null;
  }[];
}

/** The text of a stream that has its end. */
function textOfEvents(body: string, protocol: Question['protocol']): string {
  const events = body
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => JSON.parse(line.slice('data: '.length)) as StreamEvent);
  const isComplete =
    protocol === 'chat'
      ? body.endsWith('data: [DONE]\n\n') &&
        events.some(({ choices }) => choices?.[0]?.finish_reason === 'stop')
      : events.at(-1)?.type === 'response.completed';
  if (!isComplete) throw new Error(brokeOff);
  return events
    .map(({ type, delta, choices }) =>
      type === 'response.output_text.delta' ? (delta ?? '') : (choices?.[0]?.delta.content ?? ''),
    )
    .join('');
}

/**
 * Asks by a library of OpenAI, which sends some failed requests again by itself, and of which each question is given up after
 * a while, in milliseconds.
 */
export function askByOpenAi(Client: typeof OpenAI, maxMs: number): AskBy {
  return async (question, asked) => {
    const client = new Client({ baseURL: `${asked.url}/v1`, apiKey: asked.secret });
    const options = {
      headers: headersOf(question, asked),
      signal: AbortSignal.timeout(maxMs),
      ...(asked.requestMs === null ? {} : { timeout: asked.requestMs }),
    };
    const ask = question.protocol === 'chat' ? askChat : askResponses;
    return ask(client, question, options).catch(throwRefusal);
  };
}

/** Throws the HTTP error that an error of a library of OpenAI stands for, and any other one as it is. */
export function throwRefusal(error: unknown): never {
  const { status, code } = error as { readonly status?: number; readonly code?: string };
  if (!(error instanceof Error) || typeof status !== 'number') throw error;
  throw new RefusedError(status, String(code), error.message);
}

type Options = Parameters<OpenAI['responses']['create']>[1];

async function askChat(client: OpenAI, { prompt, stream }: Question, options: Options): Promise<string> {
  const body = { model: 'small', messages: [{ role: 'user' as const, content: prompt }] };
  if (!stream) return (await client.chat.completions.create(body, options)).choices[0]?.message.content ?? '';
  let text = '';
  let isComplete = false;
  for await (const { choices } of await client.chat.completions.create({ ...body, stream }, options)) {
    text += choices[0]?.delta.content ?? '';
    isComplete ||= choices[0]?.finish_reason === 'stop';
  }
  if (!isComplete) throw new Error(brokeOff);
  return text;
}

async function askResponses(client: OpenAI, { prompt, stream }: Question, options: Options): Promise<string> {
  const body = { model: 'small', input: prompt };
  if (!stream) return (await client.responses.create(body, options)).output_text;
  let text = '';
  let isComplete = false;
  for await (const event of await client.responses.create({ ...body, stream }, options)) {
    if (event.type === 'response.output_text.delta') text += event.delta;
    isComplete ||= event.type === 'response.completed';
  }
  if (!isComplete) throw new Error(brokeOff);
  return text;
}

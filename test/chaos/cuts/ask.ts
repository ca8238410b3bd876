import OpenAI, { APIError } from 'openai';
import { questionHeader } from './cutting-proxy.ts';

/** A question, how it is asked, and by which client. */
export interface Question {
  readonly number: number;
  readonly client: 'raw' | 'openai';
  readonly protocol: 'chat' | 'responses';
  readonly stream: boolean;
}

/** Where questions are asked. */
export interface Asked {
  readonly url: string;
  readonly secret: string;
  /** Whether they are sent under a name. */
  readonly isNamed: boolean;
}

/** An HTTP error, with its code. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError';
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(`${status} ${code}: ${message}`);
    this.code = code;
  }
}

/** The text of an answer, as its client has read it to its end; rejects where it can't, with `RefusedError` for an HTTP error. */
export function ask(question: Question, asked: Asked): Promise<string> {
  if (question.client === 'raw') return askRaw(question, asked);
  return askOpenAi(question, asked).catch((error: unknown) => {
    if (!(error instanceof APIError) || error.status === undefined) throw error;
    throw new RefusedError(Number(error.status), String(error.code), error.message);
  });
}

function headersOf({ number }: Question, { isNamed }: Asked): Record<string, string> {
  return {
    [questionHeader]: String(number),
    ...(isNamed ? { 'idempotency-key': `question-${number}` } : {}),
  };
}

async function askRaw(question: Question, asked: Asked): Promise<string> {
  const { number, protocol, stream } = question;
  const isChat = protocol === 'chat';
  const content = String(number);
  const said = isChat ? { messages: [{ role: 'user', content }] } : { input: content };
  const response = await fetch(`${asked.url}/v1/${isChat ? 'chat/completions' : 'responses'}`, {
    method: 'POST',
    headers: {
      ...headersOf(question, asked),
      authorization: `Bearer ${asked.secret}`,
      'content-type': 'application/json',
    },
    body: JSON.stringify({ model: 'small', stream, ...said }),
  });
  const body = await response.text();
  if (response.status !== 200) {
    const { error } = JSON.parse(body) as { error: { code: string; message: string } };
    throw new RefusedError(response.status, error.code, error.message);
  }
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
  if (!isComplete) throw new Error('the stream broke off');
  return events
    .map(({ type, delta, choices }) =>
      type === 'response.output_text.delta' ? (delta ?? '') : (choices?.[0]?.delta.content ?? ''),
    )
    .join('');
}

async function askOpenAi(question: Question, asked: Asked): Promise<string> {
  const { number, protocol, stream } = question;
  const client = new OpenAI({ baseURL: `${asked.url}/v1`, apiKey: asked.secret });
  const options = { headers: headersOf(question, asked) };
  const content = String(number);
  if (protocol === 'chat') {
    const body = { model: 'small', messages: [{ role: 'user' as const, content }] };
    if (!stream)
      return (await client.chat.completions.create(body, options)).choices[0]?.message.content ?? '';
    let text = '';
    let isComplete = false;
    for await (const { choices } of await client.chat.completions.create({ ...body, stream }, options)) {
      text += choices[0]?.delta.content ?? '';
      isComplete ||= choices[0]?.finish_reason === 'stop';
    }
    if (!isComplete) throw new Error('the stream broke off');
    return text;
  }
  const body = { model: 'small', input: content };
  if (!stream) return (await client.responses.create(body, options)).output_text;
  let text = '';
  let isComplete = false;
  for await (const event of await client.responses.create({ ...body, stream }, options)) {
    if (event.type === 'response.output_text.delta') text += event.delta;
    isComplete ||= event.type === 'response.completed';
  }
  if (!isComplete) throw new Error('the stream broke off');
  return text;
}

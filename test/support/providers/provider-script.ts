import type { ErrorCode } from '../../../src/shared/errors.ts';

/** What every scripted provider answers, in the pieces in which it streams it, and what it thinks before. */
export const pieces = ['Grüße', ', ', '🌍!'] as const;
export const whole = pieces.join('');
export const thought = 'the user wants a greeting';

/** What every provider is asked. */
export const asked = { system: 'Be brief.', user: 'Say hello', cap: 64, model: 'their/model' } as const;

/** An answer that is no answer, and the code that clients of both protocols are told. */
interface Fault {
  readonly name: string;
  readonly stream: boolean;
  readonly status: number;
  readonly bytes: string;
  /** The text that came before it. */
  readonly text: string;
  readonly code: ErrorCode;
}

/** One provider: what it must be sent, and what it answers in its own way of writing. */
export interface ProviderScript {
  /** Where the request has to arrive, query included. */
  path(stream: boolean): string;
  /** The whole body that it has to have. */
  request(stream: boolean): object;
  /** The headers that it has to have beside those of every call; the key is `key of <NAME>`. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly stream: string;
  /** Tokens of input, of it cached, of output, and of it thought. */
  readonly usage: readonly [input: number, cached: number, output: number, reasoning: number];
  readonly faults?: readonly Fault[];
}

/** The request of the chat dialect, with the names that this provider wants. */
export function chatRequest({ role = 'system', cap = 'max_tokens', asksUsage = true } = {}) {
  return (stream: boolean): object => ({
    model: asked.model,
    messages: [
      { role, content: asked.system },
      { role: 'user', content: asked.user },
    ],
    [cap]: asked.cap,
    stream,
    ...(stream && asksUsage ? { stream_options: { include_usage: true } } : {}),
  });
}

/** The body of an event stream: objects as its data, and strings as they are. */
export function sse(...frames: readonly (object | string)[]): string {
  return frames
    .map((frame) => (typeof frame === 'string' ? frame : `data: ${JSON.stringify(frame)}\n\n`))
    .join('');
}

export const done = 'data: [DONE]\n\n';

/** How a provider writes its chunks: what all of them have, and what each of its choices has. */
interface ChunkStyle {
  readonly head?: object;
  readonly choice?: object;
}

/** Writes chunks in a provider's style. */
export function chunks({ head = {}, choice = {} }: ChunkStyle = {}) {
  const fields = { id: 'c-1', object: 'chat.completion.chunk', created: 1_790_000_000, model: 'm', ...head };
  return {
    say: (delta: object, extra: object = {}): object => ({
      ...fields,
      choices: [{ index: 0, delta, finish_reason: null, ...choice }],
      ...extra,
    }),
    finish: (delta: object, extra: object = {}, reason = 'stop'): object => ({
      ...fields,
      choices: [{ index: 0, delta, ...choice, finish_reason: reason }],
      ...extra,
    }),
    usage: (usage: object, extra: object = {}): object => ({ ...fields, choices: [], usage, ...extra }),
  };
}

/** A whole completion. */
export function completion(message: object, usage: object, extra: object = {}, choice: object = {}): string {
  return JSON.stringify({
    id: 'c-1',
    object: 'chat.completion',
    created: 1_790_000_000,
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: 'stop', ...choice }],
    usage,
    ...extra,
  });
}

/** An error with which a provider refuses a request, streamed or not. */
export function refusals(name: string, status: number, error: object, code: ErrorCode): readonly Fault[] {
  const fault = { name, status, bytes: JSON.stringify(error), text: '', code };
  return [
    { ...fault, stream: false },
    { ...fault, stream: true },
  ];
}

import type { ErrorCode } from '../../../src/shared/errors.ts';

/** The answer of every scripted provider, in its streamed pieces, and the thoughts before it. */
export const pieces = ['Grüße', ', ', '🌍!'] as const;
export const whole = pieces.join('');
export const thought = 'the user wants a greeting';

/** The question to every provider. */
export const asked = { system: 'Be brief.', user: 'Say hello', cap: 64, model: 'their/model' } as const;

/** A failing answer, and the error code that clients of both protocols get. */
interface Fault {
  readonly name: string;
  readonly stream: boolean;
  readonly status: number;
  readonly bytes: string;
  /** The text before the failure. */
  readonly text: string;
  readonly code: ErrorCode;
}

/** One provider: the request that it must receive, and its answer in its own format. */
export interface ProviderScript {
  /** The expected path of the request, with its query. */
  path(stream: boolean): string;
  /** The expected body. */
  request(stream: boolean): object;
  /** The expected headers beside those of every call; the key is `key of <NAME>`. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly stream: string;
  /** Input tokens, cached ones among them, output tokens, thoughts among them. */
  readonly usage: readonly [input: number, cached: number, output: number, reasoning: number];
  readonly faults?: readonly Fault[];
}

/** The request of the chat dialect, with this provider's parameter names. */
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

/** The body of an event stream: objects become `data:` events, strings are copied. */
export function sse(...frames: readonly (object | string)[]): string {
  return frames
    .map((frame) => (typeof frame === 'string' ? frame : `data: ${JSON.stringify(frame)}\n\n`))
    .join('');
}

export const done = 'data: [DONE]\n\n';

/** A provider's chunk format: the common fields of chunks, and of their choices. */
interface ChunkStyle {
  readonly head?: object;
  readonly choice?: object;
}

/** Writes chunks in a provider's format. */
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

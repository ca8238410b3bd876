import { parseJson } from '../../shared/parse-json.ts';
import { maxEventChars } from '../../protocol/sse.ts';
import type { SseEvent } from '../../protocol/sse.ts';
import { errorText } from './call-gateway.ts';
import type { ErrorObject } from './call-gateway.ts';

/** The text of a streamed answer, event by event, and how it has ended. */
interface AnswerText {
  /** The text in an event; empty if it has none. */
  take(event: SseEvent): string;
  /** Why the answer is not whole, in the gateway's words if it said so; `null` for a whole one. */
  fault(): string | null;
}

const cutOff = 'the answer was cut off: the connection ended before it was complete';

interface ChatChunk {
  readonly error?: ErrorObject;
  readonly choices?: readonly {
    readonly delta?: { readonly content?: string };
    readonly finish_reason?: string | null;
  }[];
}

/** Reads a stream of Chat Completions. */
export function readChat(): AnswerText {
  let error: string | null = null;
  let finishReason: string | null = null;
  let isDone = false;
  return {
    take({ data }) {
      if (data === '[DONE]') {
        isDone = true;
        return '';
      }
      const chunk = (parseJson(data) ?? {}) as ChatChunk;
      if (chunk.error !== undefined) error = errorText(chunk.error);
      const [choice] = chunk.choices ?? [];
      finishReason = choice?.finish_reason ?? finishReason;
      return choice?.delta?.content ?? '';
    },
    fault() {
      if (error !== null) return error;
      if (!isDone || finishReason === null) return cutOff;
      return finishReason === 'stop' ? null : incomplete(finishReason);
    },
  };
}

interface ResponseEvent {
  readonly type?: string;
  readonly delta?: string;
  readonly message?: string;
  readonly response?: {
    readonly error?: ErrorObject | null;
    readonly incomplete_details?: { readonly reason?: string } | null;
  };
}

/** Reads a stream of Responses. */
export function readResponses(): AnswerText {
  let fault: string | null = cutOff;
  return {
    take({ data }) {
      const { type, delta, message, response } = (parseJson(data) ?? {}) as ResponseEvent;
      if (type === 'response.output_text.delta') return delta ?? '';
      if (type === 'response.completed') fault = null;
      if (type === 'response.incomplete')
        fault = incomplete(response?.incomplete_details?.reason ?? 'unknown');
      if (type === 'response.failed') fault = errorText(response?.error ?? {});
      if (type === 'error') fault = errorText({ message: message ?? 'the answer failed' });
      return '';
    },
    fault: () => fault,
  };
}

function incomplete(reason: string): string {
  return `the answer is incomplete: ${reason}`;
}

/** How wide the time before a frame is, with its unit, in characters. */
const timeChars = 10;

/** Takes a stream apart at its empty lines; comments are frames, too. */
export class FrameSplitter {
  #rest = '';

  /** Takes the next piece; returns the frames that it completed, without the empty line behind each. */
  push(text: string): readonly string[] {
    const frames = (this.#rest + text).split(/\r?\n\r?\n/);
    this.#rest = frames.pop() ?? '';
    if (this.#rest.length > maxEventChars)
      throw new Error(`a frame has more than ${maxEventChars} characters`);
    return frames;
  }

  /** What has come behind the last empty line. */
  end(): readonly string[] {
    return this.#rest === '' ? [] : [this.#rest];
  }
}

/** A frame with its time, in milliseconds; its further lines stand below the first one. */
export function writeFrame(frame: string, atMs: number): string {
  const [first = '', ...more] = frame.split(/\r?\n/);
  const time = `${Math.round(atMs)} ms`.padStart(timeChars);
  return [`${time}  ${first}`, ...more.map((line) => ' '.repeat(timeChars + 2) + line)].join('\n');
}

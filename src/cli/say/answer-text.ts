import { parseJson } from '../../shared/parse-json.ts';
import { errorText } from './error-text.ts';
import type { ErrorObject } from './error-text.ts';
import type { SseEvent } from '../../protocol/sse.ts';

/** The text of a streamed answer, event by event, and how it has ended. */
export interface AnswerText {
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

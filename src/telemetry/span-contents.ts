import type { ExchangeSummary } from '../domain/exchange-summary.ts';
import type { RequestHead } from '../domain/ports/telemetry.ts';
import { codeOf } from './error-code.ts';

/** What a span says of its work, in OpenTelemetry's words where it has some: only names, numbers and closed codes. */
export interface SpanContents {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string | number | string[]>>;
  readonly failed: boolean;
}

/** Both protocols are the same operation to a model. */
const operation = 'chat';

/** A whole request. It failed if that was not its client's doing. */
export function requestSpan(summary: ExchangeSummary, { method, route }: RequestHead): SpanContents {
  const { model, status } = summary;
  const code = codeOf(summary);
  return {
    name: model === null ? route : `${operation} ${model}`,
    attributes: withoutNulls({
      'http.request.method': method,
      'http.route': route,
      'http.response.status_code': status,
      'textgate.request_id': summary.requestId,
      'textgate.outcome': summary.outcome,
      'error.type': code,
      ...generation(summary),
    }),
    // A failure behind a good status came after the head had gone out.
    failed: status >= 500 || (code !== null && status < 400),
  };
}

/** What GenAI's conventions say about a request for text; nobody knows that of one that is passed on as it is. */
function generation(summary: ExchangeSummary): Record<string, string | number | string[] | null> {
  const { protocol, model, upstream, finishReason, usage } = summary;
  if (protocol === 'passthrough') return {};
  return {
    'gen_ai.operation.name': operation,
    'gen_ai.request.model': model,
    'gen_ai.provider.name': upstream,
    'gen_ai.response.finish_reasons': finishReason === null ? null : [finishReason],
    'gen_ai.usage.input_tokens': usage?.inputTokens ?? null,
    'gen_ai.usage.cache_read.input_tokens': usage?.cachedInputTokens ?? null,
    'gen_ai.usage.cache_creation.input_tokens': usage?.cacheWriteTokens ?? null,
    'gen_ai.usage.output_tokens': usage?.outputTokens ?? null,
  };
}

/** One attempt. Its cause stays in the log: it may name addresses. */
export function attemptSpan({ upstream, model, result }: ExchangeSummary['attempts'][number]): SpanContents {
  const failed = result !== 'ok' && result !== 'interrupted';
  return {
    name: `attempt ${upstream}`,
    attributes: withoutNulls({
      'gen_ai.provider.name': upstream,
      'gen_ai.request.model': model,
      'textgate.attempt.result': result,
      'error.type': failed ? result : null,
    }),
    failed,
  };
}

function withoutNulls<Value>(values: Readonly<Record<string, Value | null>>): Record<string, Value> {
  const known = Object.entries(values).filter((entry): entry is [string, Value] => entry[1] !== null);
  return Object.fromEntries(known);
}

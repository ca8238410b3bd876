import { isFailed } from '../../domain/money/consumption.ts';
import type { ExchangeSummary } from '../../domain/exchange-summary.ts';
import type { RequestHead } from '../../domain/ports/telemetry.ts';
import { codeOf } from '../../domain/exchange-summary.ts';

/** The name and attributes of a span, after OpenTelemetry's conventions: only names, numbers and closed codes. */
export interface SpanContents {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string | number | string[]>>;
  readonly failed: boolean;
}

/** OpenTelemetry's name for the operation of both protocols. */
const operation = 'chat';

/** The span of a whole request. It has failed unless the client caused the error. */
export function requestSpan(summary: ExchangeSummary, { method, route }: RequestHead): SpanContents {
  const { model, status } = summary;
  const code = codeOf(summary);
  return {
    name: model === null ? route : `${operation} ${model}`,
    attributes: withoutNulls({
      'http.request.method': method,
      'http.route': route,
      'http.response.status_code': status,
      'client.address': summary.clientAddress,
      'textgate.request_id': summary.requestId,
      'textgate.outcome': summary.outcome,
      'error.type': code,
      ...generation(summary),
    }),
    // An error code with a good status is a failure after the head was sent.
    failed: status >= 500 || (code !== null && status < 400),
  };
}

/** The attributes of OpenTelemetry's GenAI conventions; none for a passthrough request, whose contents are not read. */
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

/** The span of one attempt. The cause of a failure is left out: it may contain addresses. */
export function attemptSpan({ upstream, model, result }: ExchangeSummary['attempts'][number]): SpanContents {
  const failed = isFailed(result);
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

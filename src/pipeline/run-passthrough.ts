import { isRefusal, refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import type { AttemptResult } from '../domain/attempt-result.ts';
import { failures } from '../domain/failure.ts';
import type { TraceHeaders } from '../domain/ports/telemetry.ts';
import type { UpstreamFault } from '../domain/ports/upstreams.ts';
import { free } from '../domain/pricing.ts';
import type { Price } from '../domain/pricing.ts';
import type { Failure } from '../protocol/text.ts';
import { classifyStatus, withheldStatuses } from '../protocol/upstream/classify-error.ts';
import { failure } from '../protocol/upstream/failures.ts';
import type { ClientConnection } from './client-connection.ts';
import type { Exchange } from './exchange.ts';
import type { Ports } from './ports.ts';
import { causeOf, endingOfFault, refused } from './results.ts';
import type { ExchangeResult } from './results.ts';
import { dispatch, record, runRequest } from './run-request.ts';
import type { Admitted } from './stages.ts';

/** One path of an upstream that clients may use as it is. */
export interface PassthroughPath {
  readonly path: string;
  /** The upstream's configured name. */
  readonly upstream: string;
  /** What a request costs; `null` when that is not known, so that no key with a balance may use it. */
  readonly price: Price | null;
}

/** The way of a request and its answer past the pipeline, as the HTTP room provides it. */
export interface PassthroughTransport {
  /** A fault of the request that its head shows, such as a body that is too large. */
  readonly requestFault: Refusal | null;
  /**
   * Sends the request on, and all of the answer but its end. Resolves with the answer's status, or with how it failed;
   * `onHead` is called when the head of the answer goes out, which one with a withheld status never does.
   */
  forward(
    trace: TraceHeaders,
    signal: AbortSignal,
    onHead: (status: number) => void,
  ): Promise<number | UpstreamFault | Refusal>;
}

/**
 * Passes one request on to an upstream, verbatim: for a known key, within its limits, recorded, and at a price of its
 * own, since its tokens are not counted. Never rejects.
 */
export function runPassthrough(
  path: PassthroughPath,
  client: ClientConnection,
  transport: PassthroughTransport,
  ports: Ports,
): Promise<void> {
  return runRequest('passthrough', client, ports, (admitted, exchange) =>
    passOn(path, transport, admitted, exchange, ports),
  );
}

async function passOn(
  { path, upstream, price }: PassthroughPath,
  transport: PassthroughTransport,
  admitted: Admitted,
  exchange: Exchange,
  ports: Ports,
): Promise<ExchangeResult> {
  const fault = findFault({ path, price }, admitted) ?? transport.requestFault;
  if (fault !== null) return refused(fault);
  const work = { kind: 'passthrough', path, upstream, price: price ?? free } as const;
  const dispatched = dispatch(admitted, work, exchange, ports);
  const unpaid = await record(dispatched, exchange, ports);
  if (unpaid !== null) return refused(unpaid);

  const [delivery] = exchange.deliveries;
  const { signal } = exchange.interruption;
  const logged = dispatched.attempts.begin(upstream, path);
  const startedMs = ports.clock.monotonicMs();
  const passed = await transport.forward(exchange.trace.attempt(), signal, (status) =>
    delivery.passHead(status),
  );
  if (typeof passed === 'number' && delivery.isPassing) delivery.passWhole();
  const result = resultOf(passed, signal);
  Object.assign(logged, {
    result: result.kind === 'failed' ? failures[result.failure.kind].result : resultOfAnswer(passed),
    durationMs: ports.clock.monotonicMs() - startedMs,
    cause: causeOf(result),
  });
  return result;
}

/** What stands in the way of a key that wants to use a path. */
function findFault(
  { path, price }: Pick<PassthroughPath, 'path' | 'price'>,
  { key }: Admitted,
): Refusal | null {
  // A key that may use some models only could reach the others by a path, so it must be allowed the path, too.
  if (key.models !== null && !key.models.includes(path))
    return refuse('model_not_allowed', `This key may not use the path '${path}'.`);
  if (price !== null || !key.hasBalance) return null;
  return refuse(
    'model_not_allowed',
    `The path '${path}' has no price, so a key with a balance may not use it. Ask the operator to set its price, or free: true.`,
  );
}

function resultOf(passed: number | UpstreamFault | Refusal, signal: AbortSignal): ExchangeResult {
  if (isRefusal(passed)) return refused(passed);
  if (typeof passed !== 'number') return endingOfFault(passed, signal, null);
  if (withheldStatuses.has(passed) || passed >= 500)
    return { kind: 'failed', failure: classifyPassed(passed), usage: null };
  return { kind: 'finished', reason: 'stop', rawReason: '', usage: null };
}

/** An upstream's error: a client gets the words of those that it is shown itself. */
function classifyPassed(status: number): Failure {
  const { kind } = classifyStatus(status, '', null);
  const cause = `status ${status}`;
  return failure(kind === 'overloaded' || kind === 'auth' ? kind : 'server_error', { detail: cause, cause });
}

/** How an attempt stands in the record that did not fail by the upstream's own fault. Health is not told: passed-on paths say little of models. */
function resultOfAnswer(passed: number | UpstreamFault | Refusal): AttemptResult {
  if (typeof passed !== 'number') return 'interrupted';
  if (passed === 429) return 'rate_limited';
  return passed < 400 ? 'ok' : 'refused';
}

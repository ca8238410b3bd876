import { isRefusal, refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import type { AttemptResult } from '../domain/money/consumption.ts';
import { failures } from '../domain/upstreams/failure.ts';
import { isSpendingLimited } from '../domain/limits/groups.ts';
import type { TraceHeaders } from '../domain/ports/telemetry.ts';
import type { UpstreamAnswer, UpstreamFault } from '../domain/ports/upstreams.ts';
import { costOf, free, noTokens } from '../domain/money/pricing.ts';
import type { Price } from '../domain/money/pricing.ts';
import type { Failure } from '../protocol/text.ts';
import { classifyStatus, withheldStatuses } from '../protocol/upstream/classify-error.ts';
import { failure } from '../protocol/upstream/failures.ts';
import { sanitiseAll } from '../protocol/upstream/words/sanitise.ts';
import type { ClientConnection } from './client-connection.ts';
import type { Exchange } from './exchange.ts';
import { nothingUsed } from './permits/held-permit.ts';
import { refuseCost } from './money/limit-cost.ts';
import type { Ports } from './ports.ts';
import { endingOfFault, refused, wordsOf } from './results.ts';
import type { ExchangeResult } from './results.ts';
import { acquirePermit, openPermits } from './permits/acquire-permit.ts';
import { admitAndWork, dispatch, record, runRequest } from './run-request.ts';
import type { Admitted } from './stages.ts';

/** One path of an upstream that is offered to clients verbatim. */
export interface PassthroughPath {
  readonly path: string;
  /** The upstream's configured name. */
  readonly upstream: string;
  /** The price of a request; `null` if none is configured: keys with a balance may not use the path then. */
  readonly price: Price | null;
}

/** What the head of an upstream's answer says of its limits. */
export type PassedHead = Pick<UpstreamAnswer, 'status' | 'retryAfterMs' | 'limits'>;

/** Forwards a request and its answer verbatim; provided by `http/`. */
export interface PassthroughTransport {
  /** A fault that the request's head already shows, such as a body that is too large. */
  readonly requestFault: Refusal | null;
  /**
   * Forwards the request, and all of the answer but its end. Resolves with the answer's status, or with how it failed.
   * `onHead` is called when the head of the answer is sent; an answer with a withheld status is never sent. `onAnswered` is
   * called with what every answer's head says, before that.
   */
  forward(
    trace: TraceHeaders,
    signal: AbortSignal,
    onHead: (status: number) => void,
    onAnswered: ((head: PassedHead) => void) | null,
  ): Promise<number | UpstreamFault | Refusal>;
}

/**
 * Passes one request on to an upstream verbatim: for a known key, within its limits, recorded, and at a price per
 * request, since its tokens are not counted. Never rejects.
 */
export function runPassthrough(
  path: PassthroughPath,
  client: ClientConnection,
  transport: PassthroughTransport,
  ports: Ports,
): Promise<void> {
  return runRequest('passthrough', client, ports, (exchange) =>
    admitAndWork(exchange, ports, (admitted) => passOn(path, transport, admitted, exchange, ports)),
  );
}

async function passOn(
  { path, upstream, price }: PassthroughPath,
  transport: PassthroughTransport,
  admitted: Admitted,
  exchange: Exchange,
  ports: Ports,
): Promise<ExchangeResult> {
  const refuseKey = (asking: Admitted): Refusal | null => findFault({ path, price }, asking);
  const fault =
    refuseKey(admitted) ??
    transport.requestFault ??
    refuseCost(costOf(noTokens, price ?? free), exchange.client);
  if (fault !== null) return refused(fault);
  const ways = [{ upstream, model: null }];
  const { id: keyId, weight } = admitted.key;
  const permits = openPermits(ways, () => ({ keyId, weight, tokens: nothingUsed }), exchange, ports);
  let ready = admitted;
  if (permits !== null) {
    const acquired = await acquirePermit(permits, ways, admitted, refuseKey, exchange, ports);
    if (acquired.kind !== 'permitted') return acquired;
    ready = acquired.now;
  }
  const work = { kind: 'passthrough', path, upstream, price: price ?? free } as const;
  const dispatched = dispatch(ready, work, exchange, ports);
  const unpaid = await record(dispatched, exchange, ports);
  if (unpaid !== null) return refused(unpaid);

  const { delivery } = exchange;
  const { signal } = exchange.interruption;
  const startedMs = ports.clock.monotonicMs();
  const logged = dispatched.attempts.begin(upstream, path, startedMs - exchange.arrivedMs);
  const permit = permits?.permit ?? null;
  permit?.sent();
  const passed = await transport.forward(
    exchange.trace.attempt(),
    signal,
    (status) => delivery.passHead(status),
    permit === null ? null : (head) => permit.answered(head),
  );
  if (typeof passed === 'number' && delivery.isPassing) delivery.passWhole();
  const result = resultOf(passed, signal);
  Object.assign(logged, {
    result: result.kind === 'failed' ? failures[result.failure.kind].result : resultOfAnswer(passed),
    durationMs: ports.clock.monotonicMs() - startedMs,
    ...wordsOf(result),
  });
  return result;
}

/** Why a key may not use a path; `null` if it may. */
function findFault(
  { path, price }: Pick<PassthroughPath, 'path' | 'price'>,
  { key, admission }: Admitted,
): Refusal | null {
  // A key that is restricted to some models could reach others through a path, so its list must name the path, too.
  if (key.models !== null && !key.models.includes(path))
    return refuse('model_not_allowed', `This key may not use the path '${path}'.`);
  if (price !== null || !isSpendingLimited(key, admission.group)) return null;
  return refuse(
    'model_not_allowed',
    `The path '${path}' has no price, so a key with a balance or a budget, or in a group with one, may not use it. Ask the operator to set its price, or free: true.`,
  );
}

function resultOf(passed: number | UpstreamFault | Refusal, signal: AbortSignal): ExchangeResult {
  if (isRefusal(passed)) return refused(passed);
  if (typeof passed !== 'number') return endingOfFault(passed, signal, null);
  if (withheldStatuses.has(passed) || passed >= 500)
    return { kind: 'failed', failure: classifyPassed(passed), usage: null };
  return { kind: 'finished', reason: 'stop', rawReason: '', usage: null };
}

/** The failure for an upstream's error status; the client gets a message of our own instead of a withheld answer. */
function classifyPassed(status: number): Failure {
  const { kind, detail, cause, upstreamError } = classifyStatus(status, '', null, sanitiseAll);
  const shown = kind === 'overloaded' || kind === 'auth' ? kind : 'server_error';
  return failure(shown, { detail, cause, upstreamError });
}

/**
 * The recorded result of an attempt that did not fail through the upstream. Health is not updated: a passed-on path
 * says little about the upstream's models.
 */
function resultOfAnswer(passed: number | UpstreamFault | Refusal): AttemptResult {
  if (typeof passed !== 'number') return 'interrupted';
  if (passed === 429) return 'rate_limited';
  return passed < 400 ? 'ok' : 'refused';
}

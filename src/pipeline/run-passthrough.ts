import { isRefusal, refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import type { TraceHeaders } from '../domain/ports/telemetry.ts';
import type { UpstreamFault } from '../domain/ports/upstreams.ts';
import { costOf, free, noTokens } from '../domain/pricing.ts';
import type { Price } from '../domain/pricing.ts';
import type { AttemptResult } from '../domain/attempt-result.ts';
import { readUpstreamError, withheldStatuses } from '../protocol/upstream/read-error.ts';
import { admit } from './admit.ts';
import { authenticate } from './authenticate.ts';
import { conduct } from './conduct.ts';
import { failedEnding, faultEnding, finishedEnding, refusedEnding } from './endings.ts';
import type { ClientConnection } from './client-connection.ts';
import type { Ending, Exchange, Ports } from './exchange.ts';
import { beginRecord } from './reserve.ts';

/** For the record alone: the client has got the upstream's own words. */
const passedFailure = 'The upstream answered with an error, which was passed on.';

/** One path of an upstream that clients may use as it is. */
export interface PassthroughPath {
  readonly path: string;
  /** The upstream's configured name. */
  readonly upstream: string;
  /** What a request costs; `null` when that is not known, so that no key with a balance may use it. */
  readonly price: Price | null;
}

/** A request and its answer on their way through: what transport hands to the pipeline. */
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
 * Lets one request through to an upstream, verbatim: for a known key, within its limits, recorded, and at a price of its
 * own, since its tokens are not counted. Never rejects.
 */
export function runPassthrough(
  route: PassthroughPath,
  client: ClientConnection,
  forwarding: PassthroughTransport,
  ports: Ports,
): Promise<void> {
  return conduct('passthrough', client, ports, (exchange) => carry(route, forwarding, exchange, ports));
}

async function carry(
  { path, upstream, price }: PassthroughPath,
  forwarding: PassthroughTransport,
  exchange: Exchange,
  ports: Ports,
): Promise<Ending> {
  const { client, notes, interruption } = exchange;
  if (client.headFault !== null) return refusedEnding(client.headFault);
  const caller = await authenticate(client.authorization, ports.keys);
  if (isRefusal(caller)) return refusedEnding(caller);
  notes.key = caller;
  client.recognize();
  const key = await admit(caller, exchange, ports);
  if (isRefusal(key)) return refusedEnding(key);
  // A key that may use some models only could reach the others by a path, so it must be allowed the path, too.
  if (key.models !== null && !key.models.includes(path))
    return refusedEnding(refuse('model_not_allowed', `This key may not use the path '${path}'.`));
  if (price === null && key.hasBalance)
    return refusedEnding(
      refuse(
        'model_not_allowed',
        `The path '${path}' has no price, so a key with a balance may not use it. Ask the operator to set its price, or free: true.`,
      ),
    );
  if (forwarding.requestFault !== null) return refusedEnding(forwarding.requestFault);
  // The path stands in the record where the model does.
  notes.passedPrice = price ?? free;
  const nanos = costOf(noTokens, notes.passedPrice);
  const wanted = { model: path, upstream, mode: 'sync', price: notes.passedPrice } as const;
  const unpaid = await beginRecord(wanted, nanos, key, exchange, ports);
  if (unpaid !== null) return refusedEnding(unpaid);

  const startedMs = ports.clock.monotonicMs();
  const passed = await forwarding.forward(
    exchange.trace.attempt(),
    interruption.signal,
    (status) => (notes.passedStatus = status),
  );
  const durationMs = ports.clock.monotonicMs() - startedMs;
  notes.passedWhole = typeof passed === 'number';
  const ending = endingOf(passed, interruption.signal);
  notes.attempts.push({
    upstream,
    model: path,
    result: resultOf(passed),
    durationMs,
    usage: null,
    cause: ('refusal' in ending ? ending.cause : undefined) ?? null,
    violations: new Set(),
  });
  return ending;
}

function endingOf(passed: number | UpstreamFault | Refusal, signal: AbortSignal): Ending {
  if (isRefusal(passed)) return refusedEnding(passed);
  if (typeof passed !== 'number') return faultEnding(passed, signal, null);
  if (withheldStatuses.has(passed)) {
    const refusal = readUpstreamError(passed, '', null);
    return { ...failedEnding({ refusal, usage: null }), cause: `status ${passed}` };
  }
  if (passed >= 500) return failedEnding({ refusal: refuse('upstream_error', passedFailure), usage: null });
  return finishedEnding({ type: 'finish', reason: 'stop', rawReason: '', usage: null });
}

/** Statuses that say more than their class. */
const resultByStatus: ReadonlyMap<number, AttemptResult> = new Map([
  [429, 'rate_limited'],
  [529, 'overloaded'],
]);

function resultByClass(status: number): AttemptResult {
  if (withheldStatuses.has(status)) return 'auth';
  if (status < 400) return 'ok';
  return status < 500 ? 'refused' : 'error';
}

/** How it went, for the record. It says nothing of how the upstream does its real work, so health is not told. */
function resultOf(passed: number | UpstreamFault | Refusal): AttemptResult {
  if (typeof passed === 'number') return resultByStatus.get(passed) ?? resultByClass(passed);
  if (isRefusal(passed) || passed.fault === 'interrupted') return 'interrupted';
  if (passed.fault === 'broken') return 'truncated';
  return passed.fault === 'unreachable' || passed.fault === 'stale' ? 'unreachable' : 'timeout';
}

import { isRefusal, refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import type { TraceHeaders, UpstreamFault } from '../domain/ports.ts';
import { free } from '../domain/pricing.ts';
import type { AttemptResult } from '../domain/attempt-result.ts';
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
}

/** A request and its answer on their way through: what transport hands to the pipeline. */
export interface Forwarding {
  /** A fault of the request's body that can be told before it is read. */
  readonly bodyFault: Refusal | null;
  /**
   * Sends the request on, and all of the answer but its end. Resolves with the answer's status, or with how it failed;
   * `onHead` is called when the head of the answer goes out.
   */
  forward(
    trace: TraceHeaders,
    signal: AbortSignal,
    onHead: (status: number) => void,
  ): Promise<number | UpstreamFault | Refusal>;
}

/**
 * Lets one request through to an upstream, verbatim: for a known key, within its limits, and recorded, though nobody
 * knows what it cost. Never rejects.
 */
export function runPassthrough(
  route: PassthroughPath,
  client: ClientConnection,
  forwarding: Forwarding,
  ports: Ports,
): Promise<void> {
  return conduct('passthrough', client, ports, (exchange) => carry(route, forwarding, exchange, ports));
}

async function carry(
  { path, upstream }: PassthroughPath,
  forwarding: Forwarding,
  exchange: Exchange,
  ports: Ports,
): Promise<Ending> {
  const { client, notes, interruption } = exchange;
  if (client.headFault !== null) return refusedEnding(client.headFault);
  const key = await authenticate(client.authorization, ports.keys);
  if (isRefusal(key)) return refusedEnding(key);
  notes.key = key;
  // A key that may use some models only could reach the others by a path, so it must be allowed the path, too.
  if (key.models !== null && !key.models.includes(path))
    return refusedEnding(refuse('model_not_allowed', `This key may not use the path '${path}'.`));
  const limited = await admit(key, exchange, ports);
  if (limited !== null) return refusedEnding(limited);
  if (forwarding.bodyFault !== null) return refusedEnding(forwarding.bodyFault);
  // The path stands in the record where the model does.
  const wanted = {
    model: path,
    upstream,
    mode: 'sync',
    price: free,
    hold: { nanos: 0, leastNanos: 0 },
  } as const;
  const reservation = await beginRecord(wanted, key, exchange, ports);
  if (isRefusal(reservation)) return refusedEnding(reservation);

  const startedMs = ports.clock.monotonicMs();
  const passed = await forwarding.forward(
    exchange.trace.attempt(),
    interruption.signal,
    (status) => (notes.passedStatus = status),
  );
  const durationMs = ports.clock.monotonicMs() - startedMs;
  const result = resultOf(passed);
  const cause = typeof passed === 'object' && 'fault' in passed ? (passed.cause ?? null) : null;
  notes.attempts.push({
    upstream,
    model: path,
    result,
    durationMs,
    usage: null,
    cause,
    violations: new Set(),
  });
  if (isRefusal(passed)) return refusedEnding(passed);
  if (typeof passed !== 'number') return faultEnding(passed, interruption.signal, null);
  if (passed >= 500) return failedEnding({ refusal: refuse('upstream_error', passedFailure), usage: null });
  return finishedEnding({ type: 'finish', reason: 'stop', rawReason: '', usage: null });
}

/** Statuses that say more than their class. */
const resultByStatus: ReadonlyMap<number, AttemptResult> = new Map([
  [401, 'auth'],
  [402, 'auth'],
  [403, 'auth'],
  [429, 'rate_limited'],
  [529, 'overloaded'],
]);

function resultByClass(status: number): AttemptResult {
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

import { isRefusal } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import type { RequestKind } from '../domain/money/consumption.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { Telemetry, Trace, Tracer } from '../domain/ports/telemetry.ts';
import type { AnswerFacts } from '../domain/shadows/compare-answers.ts';
import type { ClaimedRun } from './claims/claimed-run.ts';
import type { ClientConnection } from './client-connection.ts';
import { Delivery } from './delivery/delivery.ts';
import { headFactsOf } from './stage-views.ts';
import type { RequestPermits } from './permits/request-permits.ts';
import type { Interruption } from './results.ts';
import type { Stage } from './stages.ts';
import type { GroupSlot } from '../domain/limits/groups.ts';

/** What a request's shadow is told by the request. */
export interface RequestShadow {
  /** Says how the request ended: with an answer to compare, or, as it was stopped, with none. Only the first call counts. */
  requestEnded(end: AnswerFacts | Interruption): void;
}

/** What the beginning of a request needs. */
interface BeginningPorts {
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly tracer: Tracer;
}

/** One request in progress. */
export interface Exchange {
  readonly id: string;
  readonly requestId: string;
  readonly protocol: RequestKind;
  /** The client that made the request. */
  readonly client: ClientConnection;
  /** All that is sent to it. */
  readonly delivery: Delivery;
  /** Milliseconds since 1970. */
  readonly arrivedAtMs: number;
  /** On the monotonic clock. */
  readonly arrivedMs: number;
  /** Raised when the request must stop: its reason is an `Interruption`. */
  readonly interruption: AbortController;
  readonly trace: Trace;
  /** Its body, where that was read before it was admitted, and until it is read for good. */
  body: Uint8Array | null;
  /** Ends its turn among the bodies of its key that were read so; `null` without one. */
  bodyTurn: (() => void) | null;
  /** Its slot of a group; `null` without one. */
  groupSlot: GroupSlot | null;
  /** Its slots being given back; `null` before. */
  freeing: Promise<void> | null;
  /** Its run under a claim; `null` where its client has not named it, and where another request runs the claim. */
  claim: ClaimedRun | null;
  /** Its permits at its upstreams; `null` where none of them has limits, and before it is routed. */
  permits: RequestPermits | null;
  /** Its copy that goes to a second upstream; `null` for nearly all requests. */
  shadow: RequestShadow | null;
  /** The stage that the request has reached. */
  stage: Stage;
}

/** Starts the exchange of one arrived request. */
export function beginExchange(
  protocol: RequestKind,
  client: ClientConnection,
  { clock, telemetry, tracer }: BeginningPorts,
): Exchange {
  const interruption = new AbortController();
  const delivery = new Delivery(client, {
    clock,
    signal: interruption.signal,
    headFacts: () => headFactsOf(exchange.stage, exchange.permits?.summary.waitMs ?? 0, exchange.claim),
    onOpened: () => telemetry.streamOpened(protocol),
    onFault: telemetry.fault,
  });
  const exchange: Exchange = {
    id: client.id,
    requestId: `req_${client.id}`,
    protocol,
    client,
    delivery,
    arrivedAtMs: clock.now(),
    arrivedMs: clock.monotonicMs(),
    interruption,
    trace: tracer.begin(client.head),
    body: null,
    bodyTurn: null,
    groupSlot: null,
    freeing: null,
    claim: null,
    permits: null,
    shadow: null,
    stage: { stage: 'arrived' },
  };
  return exchange;
}

/** Sets the stage of a request, unless it was refused there; returns its argument. */
export function reach<Next extends Stage>(exchange: Exchange, next: Next | Refusal): Next | Refusal {
  if (!isRefusal(next)) exchange.stage = next;
  return next;
}

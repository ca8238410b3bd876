import type { Refusal } from '../shared/errors.ts';
import type { Compatibility } from '../protocol/contract/compatibility.ts';
import { TextSample } from '../protocol/text-sample.ts';
import type { AnswerWriter } from '../protocol/answer-writer.ts';
import type { FinishEvent, ProtocolViolation, TextRequest, Usage } from '../protocol/text.ts';
import type { ApiKey } from '../domain/api-key.ts';
import type { Attempt, Outcome, RequestKind } from '../domain/consumption.ts';
import type { Limits, LimitDecision } from '../domain/limits.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { KeyDirectory } from '../domain/ports/keys.ts';
import type { Limiter } from '../domain/ports/limiter.ts';
import type { ModelCatalogue } from '../domain/ports/models.ts';
import type { WatchedRecords } from '../domain/ports/records.ts';
import type { Telemetry, Trace, Tracer } from '../domain/ports/telemetry.ts';
import type { TokenCounter } from '../domain/ports/tokens.ts';
import type { Upstreams } from '../domain/ports/upstreams.ts';
import type { Price } from '../domain/pricing.ts';
import type { OfferedModel, Route } from '../domain/routing.ts';
import type { AttemptResult } from '../domain/attempt-result.ts';
import type { UpstreamHealth } from '../domain/upstream-health.ts';
import type { ClientConnection } from './client-connection.ts';
import type { InFlight } from './in-flight.ts';

/** Everything that the stages use of the world. */
export interface Ports {
  readonly clock: Clock;
  readonly keys: KeyDirectory;
  readonly limiter: Limiter;
  readonly records: WatchedRecords;
  readonly models: ModelCatalogue;
  readonly upstreams: Upstreams;
  readonly telemetry: Telemetry;
  readonly tracer: Tracer;
  readonly inFlight: InFlight;
  readonly tokens: TokenCounter;
  readonly health: UpstreamHealth;
  /** Numbers from 0 up to 1, by which equal routes share their requests. */
  readonly random: () => number;
  /** The limits of a key that has none of its own. */
  readonly defaultLimits: Limits;
  /** Whether a hold is what the request may cost at the most (`strict`), or takes what is there (`soft`). */
  readonly balanceMode: 'soft' | 'strict';
  /** How the requests of a key that says nothing about it are read. */
  readonly defaultCompatibility: Compatibility;
}

/** One request on its way. The stages note here what the settlement must know, as soon as it is true. */
export interface Exchange {
  readonly id: string;
  readonly requestId: string;
  readonly protocol: RequestKind;
  readonly client: ClientConnection;
  /** Milliseconds since 1970. */
  readonly arrivedAt: number;
  /** On the monotonic clock. */
  readonly arrivedMs: number;
  /** Raised when the request must stop: its reason is an `Interruption`. */
  readonly interruption: AbortController;
  readonly trace: Trace;
  readonly notes: Notes;
}

/** One attempt at an upstream, as far as it has come. */
interface AttemptNote extends Attempt {
  result: AttemptResult;
  durationMs: number;
  usage: Usage | null;
  /** What the operator should know of a failure and the client should not. */
  cause: string | null;
  /** How the upstream broke its protocol, as far as it has been read. */
  violations: ReadonlySet<ProtocolViolation>;
}

interface Notes {
  key: ApiKey | null;
  limits: Limits | null;
  standing: LimitDecision | null;
  /** What was asked, once it is known to be sound. */
  request: TextRequest | null;
  stream: boolean;
  model: OfferedModel | null;
  stripped: readonly string[];
  route: Route | null;
  /** When the key's limits had let it in, or not. */
  admittedMs: number | null;
  /** How long it waited for a slot, in milliseconds. */
  slotWaitMs: number;
  dispatchedMs: number | null;
  /** When the first text came. */
  firstTextMs: number | null;
  /** When it was sent on, if it was in a stream. */
  firstTextSentMs: number | null;
  /** Whether a consumption record was begun. */
  recorded: boolean;
  /** What was set aside for it, in nano-USD; `null` for a key without a balance. */
  holdNanos: number | null;
  /** The key's balance behind the hold, in nano-USD; `null` for a key without one. */
  balanceNanos: number | null;
  /** The text of the answer as far as it came while the client was there. */
  readonly text: TextSample;
  /** The thoughts of the answer that is being read; `null` before there is one. */
  thoughts: TextSample | null;
  /** Whether the upstream was sent a request for a whole answer and has not refused it: nothing shows before its end. */
  awaitsWhole: boolean;
  /** What was sent upstream, in order; the last one is the route above. */
  readonly attempts: AttemptNote[];
  writer: AnswerWriter | null;
  /** Whether the client is gone; what is still read is for the books only. */
  clientLeft: boolean;
  /** The status of an answer that is passed on as it is, once its head went out. */
  passedStatus: number | null;
  /** Whether all of it was passed on, whatever its status. */
  passedWhole: boolean;
  /** What a request that is passed on as it is costs; `null` for a request for text. */
  passedPrice: Price | null;
  /** Whether a part of a stream went out, so that a failure can't be an HTTP error any more. */
  streamOpened: boolean;
  /** When something was last sent, and whether the client still has to take it. */
  sentMs: number | null;
  sending: boolean;
}

/** How an exchange ended: with an answer, with a refusal, or because somebody stopped it. */
export type Ending =
  | { readonly outcome: 'completed' | 'incomplete'; readonly finish: FinishEvent }
  | {
      readonly outcome: Exclude<Outcome, 'completed' | 'incomplete'>;
      readonly refusal: Refusal;
      readonly usage: Usage | null;
      /** What the operator should know of it and the client should not. */
      readonly cause?: string;
    };

/** Starts the exchange of one arrived request. */
export function beginExchange(protocol: RequestKind, client: ClientConnection, ports: Ports): Exchange {
  const interruption = new AbortController();
  return {
    id: client.id,
    requestId: `req_${client.id}`,
    protocol,
    client,
    arrivedAt: ports.clock.now(),
    arrivedMs: ports.clock.monotonicMs(),
    interruption,
    trace: ports.tracer.begin(client.head),
    notes: {
      key: null,
      limits: null,
      standing: null,
      request: null,
      stream: false,
      model: null,
      stripped: [],
      route: null,
      admittedMs: null,
      slotWaitMs: 0,
      dispatchedMs: null,
      firstTextMs: null,
      firstTextSentMs: null,
      recorded: false,
      holdNanos: null,
      balanceNanos: null,
      text: new TextSample(),
      thoughts: null,
      awaitsWhole: false,
      attempts: [],
      writer: null,
      clientLeft: false,
      passedStatus: null,
      passedWhole: false,
      passedPrice: null,
      streamOpened: false,
      sentMs: null,
      sending: false,
    },
  };
}

import type { Groups } from '../domain/limits/groups.ts';
import type { Limits } from '../domain/limits/limits.ts';
import type { ExchangeSummary } from '../domain/exchange-summary.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { KeyDirectory } from '../domain/ports/key-store.ts';
import type { Limiter } from '../domain/ports/limiter.ts';
import type { ModelCatalogue } from '../domain/routing.ts';
import type { WatchedRecords } from '../domain/ports/records.ts';
import type { UpstreamLimiters } from '../domain/ports/upstream-limiters.ts';
import type { Telemetry, Tracer } from '../domain/ports/telemetry.ts';
import type { TokenUse } from '../domain/limits/token-limits.ts';
import type { TokenCounter } from '../domain/ports/tokens.ts';
import type { Upstreams } from '../domain/ports/upstreams.ts';
import type { HedgeBudgets } from '../domain/routing/hedging.ts';
import type { UpstreamHealth } from '../domain/upstreams/upstream-health.ts';
import type { Compatibility } from '../protocol/contract/compatibility.ts';
import type { UpstreamRequest } from '../protocol/text.ts';
import type { Refusal } from '../shared/errors.ts';
import type { Exchange } from './exchange.ts';
import type { RunningClaims } from './claims/running-claims.ts';
import type { InFlight } from './in-flight.ts';
import type { ExchangeResult } from './results.ts';

/** Sends a share of the requests for some models to a second upstream, too; their answers are compared and dropped. */
export interface ShadowPort {
  /**
   * Begins the shadow of a request for `model` that is being sent, once its record is begun. Returns at once and never throws:
   * nothing of the request waits for its shadow, or sees what becomes of it.
   */
  begin(
    model: string,
    request: UpstreamRequest,
    recording: Promise<Refusal | null>,
    exchange: Exchange,
  ): void;
}

/**
 * What a feature does with a settled request, whose charge its summary has, before the client gets the end: so it must not
 * wait. What it throws is logged, and fails nothing.
 */
export type SettledObserver = (result: ExchangeResult, summary: ExchangeSummary, exchange: Exchange) => void;

/** All outside services that the stages use. */
export interface Ports {
  readonly clock: Clock;
  readonly keys: KeyDirectory;
  readonly limiter: Limiter;
  readonly tokenUse: TokenUse;
  readonly records: WatchedRecords;
  readonly models: ModelCatalogue;
  readonly upstreams: Upstreams;
  readonly telemetry: Telemetry;
  readonly tracer: Tracer;
  readonly inFlight: InFlight;
  /** The requests that clients have named, which run once however often they are sent. */
  readonly claims: RunningClaims;
  readonly tokens: TokenCounter;
  /** Sends copies of requests to second upstreams; `null` where no model has a shadow route. */
  readonly shadows: ShadowPort | null;
  /** What features do with each settled request: one of them for each feature that the config has, nearly always none. */
  readonly settled: readonly SettledObserver[];
  readonly health: UpstreamHealth;
  /** The limiters of upstreams with limits. */
  readonly upstreamLimiters: UpstreamLimiters;
  /** How many requests may be sent to a second route while the first one is silent. */
  readonly hedges: HedgeBudgets;
  /** Numbers from 0 up to 1, by which equal routes share their requests, and some requests get a shadow. */
  readonly random: () => number;
  /** Whether streams may take the fast path, which gives the same bytes as the complete one, at a lower cost. */
  readonly fastPath: boolean;
  /** The groups of the config in force, which may have changed since a request came. */
  readonly groups: () => Groups;
  /** The limits of a key that has none of its own. */
  readonly defaultLimits: Limits;
  /** `strict`: a hold covers the most that the request may cost; `soft`: a hold takes what the balance has. */
  readonly balanceMode: 'soft' | 'strict';
  /** Request parsing for keys without a compatibility setting of their own. */
  readonly defaultCompatibility: Compatibility;
}

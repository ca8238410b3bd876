import { circuitRules } from '../../domain/upstreams/circuit.ts';
import type { CircuitView } from '../../domain/upstreams/circuit.ts';
import type { LimitsView, LimiterView } from '../../domain/ports/upstream-limiters.ts';
import type { RouteMeasureView } from '../../domain/routing/route-measure.ts';
import type { ModelHealth } from '../../domain/upstreams/known-upstream.ts';
import type { ServedModels } from '../../operations/known-upstreams.ts';
import type { ListedUpstream } from '../../operations/list-upstreams.ts';
import { isoTime } from './iso-time.ts';
import { presentModelPrice } from './price.ts';

/** An upstream as JSON for operators. */
export function presentUpstream(upstream: ListedUpstream) {
  const { name, dialect, origin, report, availability, circuit, probes } = upstream;
  return {
    name,
    dialect,
    origin,
    state: report.state,
    cause: report.cause ?? null,
    availability,
    paused_until: isoTime(wholeMs(upstream.pausedUntilMs)),
    circuit: presentCircuit(circuit),
    probes: probes === null ? null : presentCircuit(probes),
    last_ok_at: isoTime(upstream.okAtMs),
    last_failed_at: isoTime(upstream.failedAtMs),
    running: upstream.running,
    limiter: upstream.limiter === null ? null : presentLimiter(upstream.limiter),
    routes: upstream.served === null ? null : presentServed(upstream.served),
    passthrough: upstream.passthrough,
    attempts: upstream.counts.attempts,
    violations: upstream.counts.violations,
  };
}

/** An upstream as `/admin/upstreams` shows it. */
export type PresentedUpstream = ReturnType<typeof presentUpstream>;

function presentCircuit(circuit: CircuitView) {
  const { maxConsecutiveFailures, maxFailureShare, minAttempts, windowMs } = circuitRules;
  return {
    state: circuit.state,
    only_key: circuit.onlyKey,
    open_since: isoTime(wholeMs(circuit.openSinceMs)),
    trial_at: isoTime(wholeMs(circuit.trialAtMs)),
    on_trial: circuit.isOnTrial,
    failures_in_a_row: circuit.consecutiveFailures,
    opens_at_failures: maxConsecutiveFailures,
    window: {
      seconds: windowMs / 1_000,
      attempts: circuit.windowAttempts,
      failures: circuit.windowFailures,
      opens_from_attempts: minAttempts,
      opens_at_share: maxFailureShare,
    },
  };
}

/** How an upstream's limits are used, and those of its models. */
function presentLimiter(limiter: LimiterView) {
  return {
    ...presentLimits(limiter),
    models: limiter.models.map((limits) => ({ model: limits.model, ...presentLimits(limits) })),
    pauses: limiter.pauses.map(({ model, pausedMs }) => ({ model, paused_ms: Math.ceil(pausedMs) })),
  };
}

function presentLimits(limits: LimitsView) {
  return {
    in_flight: limits.inFlight,
    max_in_flight: limits.maxInFlight,
    starts_left: limits.startsLeft,
    tokens_left: limits.tokensLeft,
    learned: limits.learned.map(({ name, limit, left }) => ({ name, limit, left: Math.floor(left) })),
    learned_in_flight: limits.learnedInFlight,
    paused_ms: Math.ceil(limits.pausedMs),
    waiting: limits.waiting,
    expected_wait_ms: Math.round(limits.expectedMs),
  };
}

function presentServed({ models, hasMore }: ServedModels) {
  return {
    data: models.map(({ model, upstreamModel, place, weight, policy, measured, health, price }) => ({
      model,
      upstream_model: upstreamModel,
      place,
      weight,
      policy,
      measured: measured === null ? null : presentMeasure(measured),
      health: health === null ? null : presentHealth(health),
      price: presentModelPrice(price),
    })),
    has_more: hasMore,
  };
}

/** A model at an upstream. */
function presentHealth({ availability, cause, circuit }: ModelHealth) {
  return {
    availability,
    cause,
    paused_until: isoTime(wholeMs(circuit.pausedUntilMs)),
    circuit: presentCircuit(circuit),
  };
}

function presentMeasure(measured: RouteMeasureView) {
  return {
    in_flight: measured.inFlight,
    waiting: measured.waiting,
    first_text_ms: wholeMs(measured.firstTextMs),
    first_text_p95_ms: wholeMs(measured.firstTextP95Ms),
    failing: measured.isFailing,
  };
}

/** The monotonic clock has fractions of a millisecond. */
function wholeMs(time: number | null): number | null {
  return time === null ? null : Math.round(time);
}

import { circuitRules } from '../../domain/circuit.ts';
import type { ModelPrice, Price } from '../../domain/pricing.ts';
import type { ListedUpstream, ServedModels, TimedCircuit } from '../../operations/list-upstreams.ts';
import { formatUsd } from '../../shared/money.ts';
import { isoTime } from './iso-time.ts';

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
    paused_until: isoTime(wholeMs(circuit.pausedUntilMs)),
    circuit: presentCircuit(circuit),
    probes: probes === null ? null : presentCircuit(probes),
    last_ok_at: isoTime(upstream.okAtMs),
    last_failed_at: isoTime(upstream.failedAtMs),
    running: upstream.running,
    routes: upstream.served === null ? null : presentServed(upstream.served),
    passthrough: upstream.passthrough,
    attempts: upstream.counts.attempts,
    violations: upstream.counts.violations,
  };
}

/** An upstream as `/admin/upstreams` shows it. */
export type PresentedUpstream = ReturnType<typeof presentUpstream>;

function presentCircuit(circuit: TimedCircuit) {
  const { maxConsecutiveFailures, maxFailureShare, minAttempts, windowMs } = circuitRules;
  return {
    state: circuit.state,
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

function presentServed({ models, hasMore }: ServedModels) {
  return {
    data: models.map(({ model, upstreamModel, place, weight, price }) => ({
      model,
      upstream_model: upstreamModel,
      place,
      weight,
      price: presentModelPrice(price),
    })),
    has_more: hasMore,
  };
}

function presentModelPrice({ above, ...line }: ModelPrice) {
  return {
    ...presentLine(line),
    above: above === null ? null : { input_tokens: above.inputTokens, ...presentLine(above) },
  };
}

/** USD per million tokens of each kind, and per request. */
function presentLine({ input, cachedInput, cacheWrite, output, request }: Price) {
  return {
    input: formatUsd(input),
    cached_input: formatUsd(cachedInput),
    cache_write: formatUsd(cacheWrite),
    output: formatUsd(output),
    request: formatUsd(request),
  };
}

/** The monotonic clock has fractions of a millisecond. */
function wholeMs(time: number | null): number | null {
  return time === null ? null : Math.round(time);
}

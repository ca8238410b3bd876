import { Registry, collectDefaultMetrics } from 'prom-client';
import type { ExchangeSummary, Telemetry } from '../domain/ports.ts';
import { registeredName } from '../protocol/contract/registry.ts';
import type { Outcome } from '../domain/consumption.ts';
import type { UpstreamState } from '../domain/upstream-health.ts';
import type { Usage } from '../protocol/text.ts';
import type { Refusal } from '../shared/errors.ts';
import type { BookFigures } from '../operations/watch-books.ts';
import { createInstruments } from './instruments.ts';

/** The label for a model or upstream that is not known yet, or not configured: clients can't add labels. */
const unknownLabel = 'none';

const stateValues: Readonly<Record<UpstreamState, number>> = { open: 0, half_open: 1, closed: 2 };

/** How an opened stream ended, by the outcome of its request. */
const streamEndings: Readonly<Record<Outcome, string>> = {
  completed: 'completed',
  incomplete: 'incomplete',
  refused: 'upstream_failed',
  upstream_failed: 'upstream_failed',
  upstream_truncated: 'upstream_truncated',
  first_byte_timeout: 'idle_timeout',
  idle_timeout: 'idle_timeout',
  total_timeout: 'total_timeout',
  client_closed: 'client_closed',
  cancelled: 'cancelled',
  drained: 'drained',
  lost: 'upstream_failed',
  server_error: 'server_error',
};

/** What is looked up when metrics are asked for. */
export interface Readings {
  readonly upstreamStates: () => Readonly<Record<string, UpstreamState>>;
  readonly books: () => BookFigures;
  /** How long the oldest settlement has waited, in milliseconds; 0 when none waits. */
  readonly settlementLagMs: () => number;
}

export interface Metrics extends Omit<Telemetry, 'fault'> {
  /** Open records without a request were closed. */
  holdsExpired(count: number): void;
  /** A config was put into force, or could not be. */
  configReloaded(result: 'ok' | 'failed'): void;
  /** The exposition text and its content type. */
  expose(): Promise<{ readonly contentType: string; readonly body: string }>;
}

export function createMetrics(readings: Readings): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const instruments = createInstruments(registry);
  const { inFlight, streamsOpen, requests, endings, holdsExpired, configReloads } = instruments;
  for (const result of ['ok', 'failed']) configReloads.inc({ result }, 0);

  return {
    exchangeBegan: (protocol) => inFlight.inc({ protocol }),
    streamOpened: (protocol) => streamsOpen.inc({ protocol }),
    exchangeEnded(summary) {
      const { protocol, mode, outcome, status } = summary;
      const model = summary.model ?? unknownLabel;
      inFlight.dec({ protocol });
      requests.inc({ protocol, model, mode, outcome, status });
      if (summary.streamOpened) {
        streamsOpen.dec({ protocol });
        endings.inc({ protocol, ending: streamEndings[outcome] });
      }
      countParameters(summary, instruments);
      countAttempts(summary, instruments);
      if (summary.upstream !== null) observeAnswer(summary, model, summary.upstream, instruments);
    },
    holdsExpired: (count) => holdsExpired.inc(count),
    configReloaded: (result) => configReloads.inc({ result }),
    async expose() {
      readAll(readings, instruments);
      return { contentType: registry.contentType, body: await registry.metrics() };
    },
  };
}

type Instruments = ReturnType<typeof createInstruments>;

function countParameters(
  { stripped: names, outcome, refusal }: ExchangeSummary,
  { stripped, rejected, limited }: Instruments,
): void {
  for (const name of names) stripped.inc({ parameter: registeredName(name) });
  if (refusal === null) return;
  if (outcome === 'refused' && refusal.param !== null)
    rejected.inc({ parameter: registeredName(refusal.param) });
  const cause = limitCause(refusal);
  if (cause !== null) limited.inc({ cause });
}

/** Which limit a refusal came of; `null` for every other refusal. */
function limitCause({ code, limit }: Refusal): string | null {
  if (code === 'insufficient_balance') return 'balance';
  if (code === 'balance_held') return 'held';
  if (limit === null) return null;
  return limit.source === 'upstream' ? 'upstream' : limit.kind;
}

function countAttempts(summary: ExchangeSummary, { attempts, violations }: Instruments): void {
  for (const { upstream, result, violations: kinds } of summary.attempts) {
    attempts.inc({ upstream, result });
    for (const kind of kinds) violations.inc({ upstream, kind });
  }
}

/** Everything that only a dispatched request has. */
function observeAnswer(
  summary: ExchangeSummary,
  model: string,
  upstream: string,
  { duration, firstToken, perToken, overhead, tokens, tokenUsage, charged }: Instruments,
): void {
  const { usage, firstTextMs, totalMs, queuedMs, handoverMs } = summary;
  const labels = {
    gen_ai_operation_name: summary.protocol,
    gen_ai_request_model: model,
    gen_ai_provider_name: upstream,
  };
  duration.observe(labels, totalMs / 1_000);
  if (queuedMs !== null) overhead.observe({ phase: 'dispatch' }, queuedMs / 1_000);
  if (handoverMs !== null) overhead.observe({ phase: 'first_byte' }, handoverMs / 1_000);
  if (firstTextMs !== null) firstToken.observe(labels, firstTextMs / 1_000);
  if (summary.chargeNanos > 0) charged.inc({ model }, summary.chargeNanos);
  if (usage === null) return;
  if (summary.mode === 'stream' && firstTextMs !== null && usage.outputTokens > 1)
    perToken.observe(labels, (totalMs - firstTextMs) / 1_000 / (usage.outputTokens - 1));
  for (const [type, amount] of Object.entries(amounts(usage))) {
    tokens.inc({ model, type }, amount);
    tokenUsage.observe({ ...labels, gen_ai_token_type: type }, amount);
  }
}

function amounts({ inputTokens, cachedInputTokens, outputTokens }: Usage): Record<string, number> {
  return { input: inputTokens, cached_input: cachedInputTokens, output: outputTokens };
}

function readAll(
  { upstreamStates, books, settlementLagMs }: Readings,
  { upstreamState, holds, imbalance, lowBalance, ledgerLag }: Instruments,
): void {
  upstreamState.reset();
  for (const [upstream, state] of Object.entries(upstreamStates()))
    upstreamState.set({ upstream }, stateValues[state]);
  const { openHolds, imbalanceNanos, lowBalances } = books();
  holds.set(openHolds);
  imbalance.set(imbalanceNanos);
  lowBalance.set(lowBalances);
  ledgerLag.set(settlementLagMs() / 1_000);
}

import { Registry, collectDefaultMetrics } from 'prom-client';
import { connectionRefusals } from '../domain/connection-refusal.ts';
import type { ConnectionRefusal } from '../domain/connection-refusal.ts';
import type { ExchangeSummary } from '../domain/exchange-summary.ts';
import type { Telemetry } from '../domain/ports/telemetry.ts';
import { registeredName } from '../protocol/contract/registry.ts';
import type { Outcome } from '../domain/consumption.ts';
import type { UpstreamState } from '../domain/circuit.ts';
import type { Refusal } from '../shared/errors.ts';
import type { LedgerFigures } from '../background/monitor-ledger.ts';
import { cacheByLabels } from './label-cache.ts';
import { createInstruments } from './instruments.ts';

/** The label for a model or upstream that is not known yet, or not configured: clients can't add labels. */
const unknownLabel = 'none';

/** What both protocols are to a model, in OpenTelemetry's words. */
const operation = 'chat';

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
  crashed: 'server_error',
  lost: 'upstream_failed',
  server_error: 'server_error',
};

/** What is looked up when metrics are asked for. */
export interface Readings {
  /** How every upstream is; one that asked for a pause counts as open. */
  readonly upstreamStates: () => Readonly<Record<string, UpstreamState>>;
  readonly books: () => LedgerFigures;
  /** How long the oldest settlement has waited, in milliseconds; 0 when none waits. */
  readonly settlementLagMs: () => number;
  /** How many lines of the log were lost so far. */
  readonly logLinesDropped: () => number;
}

export interface Metrics extends Omit<Telemetry, 'fault'> {
  /** Open records without a request were closed. */
  holdsExpired(count: number): void;
  /** A key was not looked up, because too many unknown ones were. */
  keyLookUpShed(): void;
  /** A config was put into force, or could not be. */
  configReloaded(result: 'ok' | 'failed'): void;
  /** A listener refused or closed a connection for lack of room. */
  connectionRefused(reason: ConnectionRefusal): void;
  /** The exposition text and its content type. */
  expose(): Promise<{ readonly contentType: string; readonly body: string }>;
}

export function createMetrics(readings: Readings): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const instruments = createInstruments(registry);
  const children = childrenOf(instruments);
  for (const result of ['ok', 'failed']) children.configReloads(result).inc(0);
  children.limited('lookups').inc(0);
  for (const reason of connectionRefusals) children.connectionsRefused(reason).inc(0);

  return {
    exchangeBegan: (protocol) => children.inFlight(protocol).inc(),
    streamOpened: (protocol) => children.streamsOpen(protocol).inc(),
    exchangeEnded(summary) {
      const { protocol, mode, outcome, status } = summary;
      const model = summary.model ?? unknownLabel;
      children.inFlight(protocol).dec();
      children.requests(protocol, model, mode, outcome, statusLabel(status)).inc();
      if (summary.streamOpened) {
        children.streamsOpen(protocol).dec();
        children.endings(protocol, streamEndings[outcome]).inc();
      }
      countParameters(summary, children);
      countAttempts(summary, children);
      if (summary.upstream !== null) observeAnswer(summary, model, summary.upstream, children);
    },
    holdsExpired: (count) => instruments.holdsExpired.inc(count),
    keyLookUpShed: () => children.limited('lookups').inc(),
    configReloaded: (result) => children.configReloads(result).inc(),
    connectionRefused: (reason) => children.connectionsRefused(reason).inc(),
    async expose() {
      readAll(readings, instruments);
      return { contentType: registry.contentType, body: await registry.metrics() };
    },
  };
}

type Instruments = ReturnType<typeof createInstruments>;
type Children = ReturnType<typeof childrenOf>;

/** Every metric with labels, by its labels' values in their order. */
function childrenOf(instruments: Instruments) {
  return {
    inFlight: cacheByLabels((...values) => instruments.inFlight.labels(...values)),
    streamsOpen: cacheByLabels((...values) => instruments.streamsOpen.labels(...values)),
    requests: cacheByLabels((...values) => instruments.requests.labels(...values)),
    endings: cacheByLabels((...values) => instruments.endings.labels(...values)),
    stripped: cacheByLabels((...values) => instruments.stripped.labels(...values)),
    rejected: cacheByLabels((...values) => instruments.rejected.labels(...values)),
    limited: cacheByLabels((...values) => instruments.limited.labels(...values)),
    attempts: cacheByLabels((...values) => instruments.attempts.labels(...values)),
    violations: cacheByLabels((...values) => instruments.violations.labels(...values)),
    duration: cacheByLabels((...values) => instruments.duration.labels(...values)),
    firstToken: cacheByLabels((...values) => instruments.firstToken.labels(...values)),
    perToken: cacheByLabels((...values) => instruments.perToken.labels(...values)),
    overhead: cacheByLabels((...values) => instruments.overhead.labels(...values)),
    charged: cacheByLabels((...values) => instruments.charged.labels(...values)),
    tokens: cacheByLabels((...values) => instruments.tokens.labels(...values)),
    tokenUsage: cacheByLabels((...values) => instruments.tokenUsage.labels(...values)),
    configReloads: cacheByLabels((...values) => instruments.configReloads.labels(...values)),
    connectionsRefused: cacheByLabels((...values) => instruments.connectionsRefused.labels(...values)),
  };
}

function countParameters({ stripped, outcome, refusal }: ExchangeSummary, children: Children): void {
  for (const name of stripped) children.stripped(registeredName(name)).inc();
  if (refusal === null) return;
  if (outcome === 'refused' && refusal.param !== null) children.rejected(registeredName(refusal.param)).inc();
  const cause = limitCause(refusal);
  if (cause !== null) children.limited(cause).inc();
}

/** A status as a label: one that is passed on may be any number, and a label may not. */
function statusLabel(status: number): string {
  return status >= 200 && status < 600 ? String(status) : 'other';
}

/** Which limit a refusal came of; `null` for every other refusal. */
function limitCause({ code, limit }: Refusal): string | null {
  if (code === 'insufficient_balance') return 'balance';
  if (code === 'balance_held') return 'held';
  if (limit === null) return null;
  return limit.source === 'upstream' ? 'upstream' : limit.kind;
}

function countAttempts({ attempts }: ExchangeSummary, children: Children): void {
  for (const { upstream, result, violations } of attempts) {
    children.attempts(upstream, result).inc();
    for (const kind of violations) children.violations(upstream, kind).inc();
  }
}

/** Everything that only a dispatched request has. */
function observeAnswer(summary: ExchangeSummary, model: string, upstream: string, children: Children): void {
  const { usage, firstTextMs, totalMs, queuedMs, handoverMs, protocol, mode, chargeNanos } = summary;
  if (queuedMs !== null) children.overhead('dispatch').observe((queuedMs - summary.slotWaitMs) / 1_000);
  if (handoverMs !== null) children.overhead('first_byte').observe(handoverMs / 1_000);
  // What is passed on is no operation of a model, as far as anybody knows.
  if (protocol === 'passthrough') return;
  children.duration(operation, model, upstream).observe(totalMs / 1_000);
  if (mode === 'stream' && firstTextMs !== null)
    children.firstToken(operation, model, upstream).observe(firstTextMs / 1_000);
  if (chargeNanos > 0) children.charged(model).inc(chargeNanos);
  if (usage === null) return;
  const { inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens } = usage;
  if (mode === 'stream' && firstTextMs !== null && outputTokens > 1)
    children
      .perToken(operation, model, upstream)
      .observe((totalMs - firstTextMs) / 1_000 / (outputTokens - 1));
  const amounts = {
    input: inputTokens,
    cached_input: cachedInputTokens,
    cache_write: cacheWriteTokens,
    output: outputTokens,
  };
  for (const [type, amount] of Object.entries(amounts)) {
    children.tokens(model, type).inc(amount);
    children.tokenUsage(operation, model, upstream, type).observe(amount);
  }
}

function readAll(
  { upstreamStates, books, settlementLagMs, logLinesDropped }: Readings,
  { upstreamState, holds, imbalance, lowBalance, ledgerLag, logDropped }: Instruments,
): void {
  upstreamState.reset();
  for (const [upstream, state] of Object.entries(upstreamStates()))
    upstreamState.set({ upstream }, stateValues[state]);
  const { openHolds, imbalanceNanos, lowBalances } = books();
  holds.set(openHolds);
  imbalance.set(imbalanceNanos ?? Number.NaN);
  lowBalance.set(lowBalances);
  ledgerLag.set(settlementLagMs() / 1_000);
  logDropped.reset();
  logDropped.inc(logLinesDropped());
}

import { Registry, collectDefaultMetrics } from 'prom-client';
import { connectionRefusals, edgeRefusals } from '../../domain/edge.ts';
import type { ConnectionRefusal, EdgeRefusal } from '../../domain/edge.ts';
import type { ExchangeSummary } from '../../domain/exchange-summary.ts';
import { limitOf } from '../../domain/limits/limits.ts';
import type { EndOutcome } from '../../domain/money/consumption.ts';
import type { UpstreamCounts } from '../../domain/ports/status.ts';
import type { Telemetry } from '../../domain/ports/telemetry.ts';
import { registeredName, strippedLabel } from '../../protocol/contract/registry.ts';
import type { MetricSources } from './figures.ts';
import { createInstruments } from './instruments.ts';
import type { Instruments } from './instruments.ts';
import { readFigures } from './metric-sums.ts';
import { constructorsFor } from './series.ts';
import type { Constructors } from './series.ts';
import { shadowReports } from './shadow-instruments.ts';
import { beginRefusals, countPermits } from './upstream-limiter-instruments.ts';

/** The label of a model or upstream that is undecided or not configured: clients must not be able to add labels. */
const unknownLabel = 'none';

/** OpenTelemetry's name for the operation of both protocols. */
const operation = 'chat';

/** The `ending` label of a stream, by the outcome of its request. */
const streamEndings: Readonly<Record<EndOutcome, string>> = {
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
  joined: 'joined',
  replayed: 'replayed',
  server_error: 'server_error',
};

/** The types of tokens, as labels and as fields of a usage. */
const tokenTypes = [
  ['input', 'inputTokens'],
  ['cached_input', 'cachedInputTokens'],
  ['cache_write', 'cacheWriteTokens'],
  ['output', 'outputTokens'],
] as const;

/** What can become of an attempt to deliver an event. */
const deliveryResults = ['delivered', 'failed', 'dead'] as const;

/** The metrics of a process: a sink of the pipeline's reports, and counters of everything beside requests. */
export type Metrics = ReturnType<typeof createMetrics>;

/** Creates the metrics in a registry of their own: several gateways in one process must not count into each other's. */
export function createMetrics() {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  let sources: MetricSources | null = null;
  const instruments = createInstruments(registry, () => sources);
  for (const result of ['ok', 'failed']) instruments.configReloads(result).inc(0);
  instruments.limited('lookups').inc(0);
  instruments.certificateEnd.remove();
  for (const reason of connectionRefusals) instruments.connectionsRefused(reason).inc(0);
  for (const reason of edgeRefusals) instruments.requestsRefused(reason).inc(0);
  const beginSeries = (): void => {
    if (sources !== null) beginRefusals(sources.upstreamLimiters(), instruments);
  };

  const sink: Omit<Telemetry, 'fault'> = {
    exchangeBegan: (protocol) => instruments.inFlight(protocol).inc(),
    streamOpened: (protocol) => instruments.streamsOpen(protocol).inc(),
    waitBegan: (reason) => instruments.waiting(reason).inc(),
    waitEnded(reason, waitedMs) {
      instruments.waiting(reason).dec();
      instruments.waits(reason).observe(waitedMs / 1_000);
    },
    exchangeEnded(summary) {
      const { protocol, mode, outcome, status } = summary;
      const model = summary.model ?? unknownLabel;
      instruments.inFlight(protocol).dec();
      instruments.requests(protocol, model, mode, outcome, statusLabel(status)).inc();
      if (summary.streamOpened) {
        instruments.streamsOpen(protocol).dec();
        instruments.endings(protocol, streamEndings[outcome]).inc();
      }
      countParameters(summary, instruments);
      countAttempts(summary, instruments);
      countPermits(summary.permits, instruments);
      if (summary.upstream !== null) observeAnswer(summary, model, summary.upstream, instruments);
    },
  };
  return {
    ...sink,
    /** Sets the sources of the figures that are read at a scrape, which have no values before. */
    attach: (next: MetricSources): void => void (sources = next),
    /** Adds the metrics of a feature that a config has: once in a process. A feature that no config has shows none. */
    add: <Added>(create: (constructors: Constructors) => Added): Added => create(constructorsFor(registry)),
    /** Counts open records that were closed without a running request. */
    holdsExpired: (count: number) => instruments.holdsExpired.inc(count),
    /** Counts records that were removed because they were old. */
    recordsRemoved: (count: number) => instruments.recordsRemoved.inc(count),
    /** Counts what came of an attempt to deliver an event to a webhook. */
    webhookDelivered(webhook: string, result: (typeof deliveryResults)[number]): void {
      // An alert on a rare result needs its series before the first one.
      for (const one of deliveryResults)
        instruments.webhookDeliveries(webhook, one).inc(one === result ? 1 : 0);
    },
    /** Counts what becomes of shadow requests. */
    shadows: shadowReports(instruments),
    /** Counts a key that was not looked up, because too many unknown keys were. */
    keyLookUpShed: () => instruments.limited('lookups').inc(),
    /** Counts a reload of the config, or of the TLS certificate. */
    configReloaded: (result: 'ok' | 'failed') => instruments.configReloads(result).inc(),
    /** Sets when the TLS certificate ends, in milliseconds since 1970. */
    certificateEnds: (atMs: number) => instruments.certificateEnd.set(atMs / 1_000),
    /** Counts a connection that a listener refused or closed. */
    connectionRefused: (reason: ConnectionRefusal) => instruments.connectionsRefused(reason).inc(),
    /** Counts a request that a listener refused before any route. */
    requestRefused: (reason: EdgeRefusal) => instruments.requestsRefused(reason).inc(),
    /** What was counted of each upstream, by its name; upstreams without an attempt are absent. */
    upstreamCounts: () => countsOfUpstreams(instruments),
    /** The exposition text and its content type. */
    async expose() {
      beginSeries();
      return { contentType: registry.contentType, body: await registry.metrics() };
    },
    /** The same figures, to be added to those of other processes. */
    async figures() {
      beginSeries();
      return readFigures(registry);
    },
  };
}

function countParameters({ stripped, outcome, refusal }: ExchangeSummary, instruments: Instruments): void {
  for (const name of stripped) instruments.stripped(strippedLabel(name)).inc();
  if (refusal === null) return;
  if (outcome === 'refused' && refusal.param !== null)
    instruments.rejected(registeredName(refusal.param)).inc();
  const cause = limitOf(refusal);
  if (cause !== null) instruments.limited(cause).inc();
}

/** A status as a label: passthrough answers may have any number, labels come from a closed set. */
function statusLabel(status: number): string {
  return status >= 200 && status < 600 ? String(status) : 'other';
}

function countAttempts({ attempts }: ExchangeSummary, instruments: Instruments): void {
  for (const { upstream, result, violations } of attempts) {
    instruments.attempts(upstream, result).inc();
    for (const kind of violations) instruments.violations(upstream, kind).inc();
  }
}

/** Observes what only a dispatched request has. */
function observeAnswer(
  summary: ExchangeSummary,
  model: string,
  upstream: string,
  instruments: Instruments,
): void {
  const waitMs = summary.limiterMs + (summary.permits?.firstWaitMs ?? 0);
  const { usage, firstTextMs, totalMs, queuedMs, handoverMs, protocol, mode, chargeNanos, hedge } = summary;
  if (hedge !== null) instruments.hedges(model, hedge).inc();
  if (queuedMs !== null) instruments.overhead('dispatch').observe((queuedMs - waitMs) / 1_000);
  if (handoverMs !== null) instruments.overhead('first_byte').observe(handoverMs / 1_000);
  // A passthrough request may be anything: it must not distort the figures of models.
  if (protocol === 'passthrough') return;
  instruments.duration(operation, model, upstream).observe(totalMs / 1_000);
  if (mode === 'stream' && firstTextMs !== null)
    instruments.firstToken(operation, model, upstream).observe(firstTextMs / 1_000);
  if (chargeNanos > 0) instruments.charged(model).inc(chargeNanos);
  if (usage === null) return;
  const { outputTokens } = usage;
  if (mode === 'stream' && firstTextMs !== null && outputTokens > 1)
    instruments
      .perToken(operation, model, upstream)
      .observe((totalMs - firstTextMs) / 1_000 / (outputTokens - 1));
  for (const [type, field] of tokenTypes) {
    instruments.tokens(model, type).inc(usage[field]);
    instruments.tokenUsage(operation, model, upstream, type).observe(usage[field]);
  }
}

/** What was counted of each upstream, by its name. */
function countsOfUpstreams({
  attempts,
  violations,
}: Pick<Instruments, 'attempts' | 'violations'>): ReadonlyMap<string, UpstreamCounts> {
  const found = new Map<string, { attempts: Record<string, number>; violations: Record<string, number> }>();
  const of = (upstream = '') => {
    const counts = found.get(upstream) ?? { attempts: {}, violations: {} };
    found.set(upstream, counts);
    return counts;
  };
  for (const { labels, cell } of attempts.series.all)
    of(labels['upstream']).attempts[labels['result'] ?? ''] = cell.value;
  for (const { labels, cell } of violations.series.all)
    of(labels['upstream']).violations[labels['kind'] ?? ''] = cell.value;
  return found;
}

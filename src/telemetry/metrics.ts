import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client';
import type { Telemetry } from '../domain/ports.ts';
import { registeredName } from '../protocol/contract/registry.ts';
import type { Outcome } from '../domain/consumption.ts';
import type { Protocol, Usage } from '../protocol/text.ts';

/** The label for a model or upstream that is not known yet, or not configured: clients can't add labels. */
const unknownLabel = 'none';

/** OpenTelemetry's bucket bounds for the GenAI histograms, in seconds and in tokens. */
const durationBuckets = [
  0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
];
const firstTokenBuckets = [
  0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
];
const tokenBuckets = [1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576];

const operationNames: Readonly<Record<Protocol, string>> = { chat: 'chat', responses: 'responses' };

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

export interface Metrics extends Omit<Telemetry, 'fault'> {
  /** The exposition text and its content type. */
  expose(): Promise<{ readonly contentType: string; readonly body: string }>;
}

/** Every metric of the service, its help text and its labels. All labels come from closed sets. */
export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  const genAiLabels = ['gen_ai_operation_name', 'gen_ai_request_model', 'gen_ai_provider_name'];

  const duration = new Histogram({
    name: 'gen_ai_server_request_duration_seconds',
    help: 'Time from the arrival of a dispatched request to its end.',
    labelNames: genAiLabels,
    buckets: durationBuckets,
    registers,
  });
  const firstToken = new Histogram({
    name: 'gen_ai_server_time_to_first_token_seconds',
    help: 'Time from the arrival of a request to the first text of its answer.',
    labelNames: genAiLabels,
    buckets: firstTokenBuckets,
    registers,
  });
  const tokenUsage = new Histogram({
    name: 'gen_ai_client_token_usage',
    help: 'Tokens of one request, as the upstream counted them.',
    labelNames: [...genAiLabels, 'gen_ai_token_type'],
    buckets: tokenBuckets,
    registers,
  });
  const requests = new Counter({
    name: 'textgate_requests_total',
    help: 'Requests that ended, by how.',
    labelNames: ['protocol', 'model', 'mode', 'outcome', 'status'],
    registers,
  });
  const inFlight = new Gauge({
    name: 'textgate_requests_in_flight',
    help: 'Requests in progress.',
    labelNames: ['protocol'],
    registers,
  });
  const streamsOpen = new Gauge({
    name: 'textgate_streams_open',
    help: 'Streams of which a part has been sent and that have not ended.',
    labelNames: ['protocol'],
    registers,
  });
  const limited = new Counter({
    name: 'textgate_limited_total',
    help: 'Requests refused because of a limit.',
    labelNames: ['cause'],
    registers,
  });
  const stripped = new Counter({
    name: 'textgate_stripped_parameters_total',
    help: 'Parameters taken out of requests.',
    labelNames: ['parameter'],
    registers,
  });
  const rejected = new Counter({
    name: 'textgate_rejected_parameters_total',
    help: 'Requests refused because of a parameter, by the one named in the refusal.',
    labelNames: ['parameter'],
    registers,
  });
  const endings = new Counter({
    name: 'textgate_stream_endings_total',
    help: 'Opened streams that ended, by how.',
    labelNames: ['protocol', 'ending'],
    registers,
  });
  const violations = new Counter({
    name: 'textgate_upstream_protocol_violations_total',
    help: 'Answers in which an upstream broke its protocol, by how; most of them are still served.',
    labelNames: ['upstream', 'kind'],
    registers,
  });
  const attempts = new Counter({
    name: 'textgate_upstream_attempts_total',
    help: 'Requests sent to an upstream, by how that went; a client sees one answer, however many there were.',
    labelNames: ['upstream', 'result'],
    registers,
  });
  const tokens = new Counter({
    name: 'textgate_tokens_total',
    help: 'Tokens, as the upstreams counted them.',
    labelNames: ['model', 'type'],
    registers,
  });

  const countTokens = (usage: Usage, model: string, labels: Record<string, string>): void => {
    const byType = {
      input: usage.inputTokens,
      cached_input: usage.cachedInputTokens,
      output: usage.outputTokens,
    };
    for (const [type, amount] of Object.entries(byType)) {
      tokens.inc({ model, type }, amount);
      tokenUsage.observe({ ...labels, gen_ai_token_type: type }, amount);
    }
  };

  return {
    exchangeBegan: (protocol) => inFlight.inc({ protocol }),
    streamOpened: (protocol) => streamsOpen.inc({ protocol }),
    exchangeEnded(summary) {
      const { protocol, mode, outcome, status, usage, refusal } = summary;
      const model = summary.model ?? unknownLabel;
      inFlight.dec({ protocol });
      requests.inc({ protocol, model, mode, outcome, status });
      for (const name of summary.stripped) stripped.inc({ parameter: registeredName(name) });
      const param = summary.outcome === 'refused' ? refusal?.param : null;
      if (typeof param === 'string') rejected.inc({ parameter: registeredName(param) });
      if (refusal !== null && refusal.limit !== null) limited.inc({ cause: limitCause(refusal.limit) });
      if (summary.streamOpened) {
        streamsOpen.dec({ protocol });
        endings.inc({ protocol, ending: streamEndings[outcome] });
      }
      for (const { upstream, result, violations: kinds } of summary.attempts) {
        attempts.inc({ upstream, result });
        for (const kind of kinds) violations.inc({ upstream, kind });
      }
      if (summary.upstream === null) return;
      const labels = {
        gen_ai_operation_name: operationNames[protocol],
        gen_ai_request_model: model,
        gen_ai_provider_name: summary.upstream,
      };
      duration.observe(labels, summary.totalMs / 1_000);
      if (summary.firstTextMs !== null) firstToken.observe(labels, summary.firstTextMs / 1_000);
      if (usage !== null) countTokens(usage, model, labels);
    },
    expose: async () => ({ contentType: registry.contentType, body: await registry.metrics() }),
  };
}

function limitCause({ source, kind }: { readonly source: string; readonly kind: string }): string {
  return source === 'upstream' ? 'upstream' : kind;
}

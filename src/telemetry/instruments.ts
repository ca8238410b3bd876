import { Counter, Gauge, Histogram } from 'prom-client';
import type { Registry } from 'prom-client';

/** OpenTelemetry's bucket bounds for the GenAI histograms, in seconds and in tokens. */
const durationBuckets = [
  0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
];
const firstTokenBuckets = [
  0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
];
const perTokenBuckets = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5];
const tokenBuckets = [1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576];

/** Bucket bounds for our own share of the time, in seconds: it should be a few milliseconds. */
const overheadBuckets = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];

const genAiLabels = ['gen_ai_operation_name', 'gen_ai_request_model', 'gen_ai_provider_name'] as const;

/** Every metric of the service, its help text and its labels, all of which come from closed sets. */
export function createInstruments(registry: Registry) {
  const registers = [registry];
  const counter = <Label extends string>(name: string, help: string, labelNames: readonly Label[]) =>
    new Counter({ name, help, labelNames: [...labelNames], registers });
  const gauge = <Label extends string>(name: string, help: string, labelNames: readonly Label[] = []) =>
    new Gauge({ name, help, labelNames: [...labelNames], registers });
  const histogram = <Label extends string>(
    name: string,
    help: string,
    labelNames: readonly Label[],
    buckets: number[],
  ) => new Histogram({ name, help, labelNames: [...labelNames], buckets, registers });

  return {
    duration: histogram(
      'gen_ai_server_request_duration_seconds',
      'Time from the arrival of a dispatched request to its end.',
      genAiLabels,
      durationBuckets,
    ),
    firstToken: histogram(
      'gen_ai_server_time_to_first_token_seconds',
      'Time from the arrival of a request to the first text of its streamed answer.',
      genAiLabels,
      firstTokenBuckets,
    ),
    perToken: histogram(
      'gen_ai_server_time_per_output_token_seconds',
      'Time per output token after the first text of a streamed answer.',
      genAiLabels,
      perTokenBuckets,
    ),
    tokenUsage: histogram(
      'gen_ai_client_token_usage',
      'Tokens of one request, as the upstream counted them.',
      [...genAiLabels, 'gen_ai_token_type'],
      tokenBuckets,
    ),
    requests: counter('textgate_requests_total', 'Requests that ended, by how.', [
      'protocol',
      'model',
      'mode',
      'outcome',
      'status',
    ]),
    inFlight: gauge('textgate_requests_in_flight', 'Requests in progress.', ['protocol']),
    streamsOpen: gauge(
      'textgate_streams_open',
      'Streams of which a part has been sent and that have not ended.',
      ['protocol'],
    ),
    overhead: histogram(
      'textgate_overhead_seconds',
      'Our own time: from arrival to dispatch but for a wait for a slot, and from the first upstream text to the first byte for the client.',
      ['phase'],
      overheadBuckets,
    ),
    limited: counter('textgate_limited_total', 'Requests refused because of a limit.', ['cause']),
    stripped: counter('textgate_stripped_parameters_total', 'Parameters taken out of requests.', [
      'parameter',
    ]),
    rejected: counter(
      'textgate_rejected_parameters_total',
      'Requests refused because of a parameter, by the one named in the refusal.',
      ['parameter'],
    ),
    endings: counter('textgate_stream_endings_total', 'Opened streams that ended, by how.', [
      'protocol',
      'ending',
    ]),
    attempts: counter(
      'textgate_upstream_attempts_total',
      'Requests sent to an upstream, by how that went; a client sees one answer, however many there were.',
      ['upstream', 'result'],
    ),
    upstreamState: gauge(
      'textgate_upstream_state',
      'Whether an upstream is used: 2 as usual (closed), 1 for one request that finds out (half-open), 0 not for now: it failed (open), or asked for a pause.',
      ['upstream'],
    ),
    violations: counter(
      'textgate_upstream_protocol_violations_total',
      'Answers in which an upstream broke its protocol, by how; most of them are still served.',
      ['upstream', 'kind'],
    ),
    tokens: counter('textgate_tokens_total', 'Tokens, as the upstreams counted them.', ['model', 'type']),
    charged: counter('textgate_charged_nanos_total', 'What requests were charged, in billionths of a USD.', [
      'model',
    ]),
    holds: gauge('textgate_holds_outstanding', 'Requests whose record is open, and whose hold is set aside.'),
    holdsExpired: counter(
      'textgate_holds_expired_total',
      'Open records without a request that were closed, and their holds given back.',
      [],
    ),
    configReloads: counter(
      'textgate_config_reloads_total',
      'Configs that were to be put into force, by whether they could be.',
      ['result'],
    ),
    connectionsRefused: counter(
      'textgate_connections_refused_total',
      'Connections that a listener refused or closed for lack of room, by why.',
      ['reason'],
    ),
    leasesExpired: counter(
      'textgate_leases_expired_total',
      'Slots that were given back because their holder was not heard of any more; a single process has none.',
      [],
    ),
    limiterDegraded: gauge(
      'textgate_limiter_degraded',
      'Whether limits are counted per process because the common count can not be reached; 0 in a single process.',
    ),
    logDropped: counter(
      'textgate_log_lines_dropped_total',
      'Lines of the log that were lost: its destination failed, or did not take them in time.',
      [],
    ),
    ledgerLag: gauge(
      'textgate_ledger_lag_seconds',
      'How long the oldest settlement has waited for the database; 0 when none waits.',
    ),
    imbalance: gauge(
      'textgate_ledger_imbalance_nanos',
      'By how much accounts and ledger differ, in billionths of a USD. Anything but 0 is a fault; NaN until an audit has succeeded, and after one that failed.',
    ),
    lowBalance: gauge('textgate_keys_low_balance', 'Keys in use whose balance is below limits.lowBalance.'),
  };
}

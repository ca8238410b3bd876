import type { Registry } from 'prom-client';
import { constructorsFor } from './series.ts';
import type { Constructors } from './series.ts';
import { shadowInstruments } from './shadow-instruments.ts';
import { upstreamLimiterInstruments } from './upstream-limiter-instruments.ts';

/**
 * OpenTelemetry's bucket bounds for the GenAI histograms, in seconds and in tokens. Those of times go on to the time-outs of
 * calls with the wait before them, or each quantile of a model that thinks would be the last bound; they leave out some
 * that no provider is as quick as, since each bound is a line for each series.
 */
const durationBuckets = [
  0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84, 327.68, 655.36,
];
const firstTokenBuckets = [0.02, 0.04, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 320, 640];
const perTokenBuckets = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1, 2.5, 10, 60];
const tokenBuckets = [1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576];

/** Bucket bounds for the gateway's own latency, in seconds: it should be a few milliseconds. */
const overheadBuckets = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30];

const genAiLabels = ['gen_ai_operation_name', 'gen_ai_request_model', 'gen_ai_provider_name'] as const;

/** Every metric of the service with its help text and its labels, whose values come from closed sets. */
export type Instruments = ReturnType<typeof createInstruments>;

export function createInstruments(registry: Registry) {
  const constructors = constructorsFor(registry);
  return {
    ...requestInstruments(constructors),
    ...waitInstruments(constructors),
    ...upstreamInstruments(constructors),
    ...upstreamLimiterInstruments(constructors),
    ...shadowInstruments(constructors),
    ...serviceInstruments(constructors),
    ...topInstruments(constructors),
    ...eventInstruments(constructors),
    ...databaseInstruments(constructors),
  };
}

/** What happens to requests. */
function requestInstruments({ counterBy, histogramBy }: Constructors) {
  return {
    duration: histogramBy(
      genAiLabels,
      'gen_ai_server_request_duration_seconds',
      'Time from the arrival of a dispatched request to its end.',
      durationBuckets,
    ),
    firstToken: histogramBy(
      genAiLabels,
      'gen_ai_server_time_to_first_token_seconds',
      'Time from the arrival of a request to the first text of its streamed answer.',
      firstTokenBuckets,
    ),
    perToken: histogramBy(
      genAiLabels,
      'gen_ai_server_time_per_output_token_seconds',
      'Time per output token after the first text of a streamed answer.',
      perTokenBuckets,
    ),
    tokenUsage: histogramBy(
      [...genAiLabels, 'gen_ai_token_type'],
      'gen_ai_client_token_usage',
      'Tokens per request, as reported by the upstream.',
      tokenBuckets,
    ),
    requests: counterBy(
      ['protocol', 'model', 'mode', 'outcome', 'status'],
      'textgate_requests_total',
      'Ended requests, by outcome.',
    ),
    overhead: histogramBy(
      ['phase'],
      'textgate_overhead_seconds',
      "The gateway's own latency: from arrival to dispatch without the waits for a slot and for an upstream, and from the upstream's first text to the first byte for the client.",
      overheadBuckets,
    ),
    limited: counterBy(['cause'], 'textgate_limited_total', 'Requests refused because of a limit, by limit.'),
    stripped: counterBy(
      ['parameter'],
      'textgate_stripped_parameters_total',
      'Parameters removed from requests.',
    ),
    rejected: counterBy(
      ['parameter'],
      'textgate_rejected_parameters_total',
      'Requests refused because of a parameter, by the parameter named in the refusal.',
    ),
    endings: counterBy(
      ['protocol', 'ending'],
      'textgate_stream_endings_total',
      'Ended streams, by how they ended.',
    ),
    tokens: counterBy(['model', 'type'], 'textgate_tokens_total', 'Tokens, as reported by the upstreams.'),
    charged: counterBy(
      ['model'],
      'textgate_charged_nanos_total',
      'Amount charged for requests, in billionths of a USD.',
    ),
  };
}

/** What upstreams do. */
function upstreamInstruments({ counterBy, gauge }: Constructors) {
  return {
    attempts: counterBy(
      ['upstream', 'result'],
      'textgate_upstream_attempts_total',
      'Requests sent to an upstream, by result; one client request may need several.',
    ),
    hedges: counterBy(
      ['model', 'result'],
      'textgate_hedges_total',
      'Second requests beside a slow one, by what became of them: their text was first (won), or that of the first request (lost), neither brought a text (failed), or none was sent because the budget was used up (refused).',
    ),
    upstreamState: gauge(
      'textgate_upstream_state',
      'State of an upstream, as good as the best of its models that were asked for: 2 in use; 1 half-open, one trial request at a time; 0 its circuit is open after failures, or all of these models pause or have an open circuit.',
      ['upstream'],
    ),
    upstreamModelState: gauge(
      'textgate_upstream_model_state',
      'State of a model at an upstream, by its name there, once it was asked for: 2 in use; 1 half-open, one trial request at a time; 0 open after failures, or paused at its own request.',
      ['upstream', 'model'],
    ),
    modelAvailable: gauge(
      'textgate_model_available',
      'Whether at least one route of a model works, with closed circuits and no pause: 1; else 0.',
      ['model'],
    ),
    violations: counterBy(
      ['upstream', 'kind'],
      'textgate_upstream_protocol_violations_total',
      'Answers that violate the protocol of their upstream, by kind; most are still served.',
    ),
  };
}

/** What was charged most today. */
function topInstruments({ gauge }: Constructors) {
  return {
    topKeys: gauge(
      'textgate_top_keys_charged_today_nanos',
      'Charges of a key since midnight UTC, in billionths of a USD; only the keys that were charged most have one, as many as metrics.topKeys.',
      ['key_id', 'key_name'],
    ),
    topGroups: gauge(
      'textgate_top_groups_charged_today_nanos',
      'Charges of a group of keys since midnight UTC, in billionths of a USD; only the groups that were charged most have one, as many as metrics.topKeys.',
      ['group'],
    ),
  };
}

/** The state of the service itself: ledger, config, connections, log. */
function serviceInstruments({ counter, counterBy, gauge }: Constructors) {
  return {
    holds: gauge('textgate_holds_outstanding', 'Open consumption records, each of which holds money.'),
    holdsExpired: counter(
      'textgate_holds_expired_total',
      'Open records without a running request that were closed and their holds released.',
    ),
    configReloads: counterBy(
      ['result'],
      'textgate_config_reloads_total',
      'Attempts to reload the config or the TLS certificate, by result.',
    ),
    certificateEnd: gauge(
      'textgate_tls_certificate_not_after_seconds',
      'When the TLS certificate of the listener for clients ends, in seconds since 1970; without TLS there is no such series.',
    ),
    connectionsRefused: counterBy(
      ['reason'],
      'textgate_connections_refused_total',
      'Connections that a listener refused or closed for lack of room, or because TLS failed, by reason.',
    ),
    requestsRefused: counterBy(
      ['reason'],
      'textgate_edge_refusals_total',
      'Requests that a listener refused before any route, because of their form, size or time, by reason.',
    ),
    logDropped: counter(
      'textgate_log_lines_dropped_total',
      'Log lines lost because their destination failed or was too slow.',
    ),
    ledgerLag: gauge(
      'textgate_ledger_lag_seconds',
      'Age of the oldest settlement that waits for the database; 0 when none waits.',
    ),
    imbalance: gauge(
      'textgate_ledger_imbalance_nanos',
      'Difference between accounts and ledger, in billionths of a USD. Anything but 0 is a fault; NaN before the first audit and after one that failed.',
    ),
    rootNumber: gauge(
      'textgate_ledger_root_number',
      'Number of the newest root over the ledger, made every hour; absent before the first one. A number that falls is that of a database that was restored.',
    ),
    rootAge: gauge(
      'textgate_ledger_root_age_seconds',
      'Age of the newest root over the ledger; absent before the first one.',
    ),
    recordsRemoved: counter(
      'textgate_records_removed_total',
      'Records of requests that were removed because they were old.',
    ),
    oldestRecord: gauge(
      'textgate_oldest_record_age_seconds',
      'Age of the oldest record of a request that is kept; absent without one.',
    ),
    lowBalance: gauge(
      'textgate_keys_low_balance',
      'Active keys whose balance is below their lowBalance, or else below limits.lowBalance.',
    ),
    warnedBudgets: gauge(
      'textgate_budgets_warned',
      'Budgets of keys and groups that have reached a warning level in their current period.',
    ),
  };
}

/** Bucket bounds for waits in a queue, in seconds. */
const waitBuckets = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];

/** Requests in progress, and those of them that wait. */
function waitInstruments({ gaugeBy, histogramBy }: Constructors) {
  return {
    inFlight: gaugeBy(['protocol'], 'textgate_requests_in_flight', 'Requests in progress.'),
    streamsOpen: gaugeBy(
      ['protocol'],
      'textgate_streams_open',
      'Streamed answers that have begun and not ended.',
    ),
    waiting: gaugeBy(
      ['reason'],
      'textgate_requests_waiting',
      'Requests that wait in a queue: for a slot of their key or group, or for a permit of an upstream.',
    ),
    waits: histogramBy(
      ['reason'],
      'textgate_wait_seconds',
      'How long requests waited in a queue, those that were refused at its end included.',
      waitBuckets,
    ),
  };
}

/** Events and their deliveries to webhooks. */
function eventInstruments({ counterBy, gauge }: Constructors) {
  return {
    webhookDeliveries: counterBy(
      ['webhook', 'result'],
      'textgate_webhook_deliveries_total',
      'Attempts to deliver an event to a webhook, by result: delivered, failed, and dead for one that was the last.',
    ),
    oldestEvent: gauge(
      'textgate_outbox_oldest_age_seconds',
      'Age of the oldest event that waits for its delivery; 0 when none waits, absent without webhooks.',
    ),
  };
}

/** Whether the database can be used, and what it takes. */
function databaseInstruments({ gauge }: Constructors) {
  return {
    databaseUsable: gauge(
      'textgate_database_usable',
      'Whether the database takes writes and its file is the one that was opened, and undamaged: 1; else 0, and new requests are refused.',
    ),
    logBytes: gauge(
      'textgate_database_log_bytes',
      'Size of the write-ahead log of the SQLite database; absent with PostgreSQL and in memory.',
    ),
  };
}

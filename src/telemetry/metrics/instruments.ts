import type { Registry } from 'prom-client';
import type { UpstreamState } from '../../domain/upstreams/circuit.ts';
import { figuresFor } from './figures.ts';
import type { Figures, MetricSources } from './figures.ts';
import { constructorsFor } from './series.ts';
import type { Constructors } from './series.ts';
import { serviceInstruments } from './service-instruments.ts';
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

/** Creates all metrics: those that are counted here, and those that are read from `sources` at a scrape. */
export function createInstruments(registry: Registry, sources: () => MetricSources | null) {
  const constructors = constructorsFor(registry);
  const figures = figuresFor(constructors, sources);
  return {
    ...requestInstruments(constructors),
    ...waitInstruments(constructors),
    ...upstreamInstruments(constructors, figures),
    ...upstreamLimiterInstruments(constructors, figures),
    ...shadowInstruments(constructors),
    ...serviceInstruments(constructors, figures),
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

/** The values of a gauge of states. */
const stateValues: Readonly<Record<UpstreamState, number>> = { open: 0, half_open: 1, closed: 2 };

/** What upstreams do, and in which state they are. */
function upstreamInstruments({ counterBy }: Constructors, { figuresBy }: Figures) {
  const attempts = counterBy(
    ['upstream', 'result'],
    'textgate_upstream_attempts_total',
    'Requests sent to an upstream, by result; one client request may need several.',
  );
  const hedges = counterBy(
    ['model', 'result'],
    'textgate_hedges_total',
    'Second requests beside a slow one, by what became of them: their text was first (won), or that of the first request (lost), neither brought a text (failed), or none was sent because the budget was used up (refused).',
  );
  // Of several processes the worst state is shown: an upstream may fail for one of them alone.
  figuresBy(
    ['upstream'],
    'textgate_upstream_state',
    'State of an upstream, as good as the best of its models that were asked for: 2 in use; 1 half-open, one trial request at a time; 0 its circuit is open after failures, or all of these models pause or have an open circuit.',
    'min',
    ({ upstreamStates }) =>
      Object.entries(upstreamStates()).map(([upstream, state]) => ({
        labels: { upstream },
        value: stateValues[state],
      })),
  );
  figuresBy(
    ['upstream', 'model'],
    'textgate_upstream_model_state',
    'State of a model at an upstream, by its name there, once it was asked for: 2 in use; 1 half-open, one trial request at a time; 0 open after failures, or paused at its own request.',
    'min',
    ({ upstreamModelStates }) =>
      upstreamModelStates().map(({ state, ...labels }) => ({ labels, value: stateValues[state] })),
  );
  figuresBy(
    ['model'],
    'textgate_model_available',
    'Whether at least one route of a model works, with closed circuits and no pause: 1; else 0.',
    'min',
    ({ modelAvailability }) =>
      modelAvailability().map(([model, isAvailable]) => ({ labels: { model }, value: Number(isAvailable) })),
  );
  const violations = counterBy(
    ['upstream', 'kind'],
    'textgate_upstream_protocol_violations_total',
    'Answers that violate the protocol of their upstream, by kind; most are still served.',
  );
  return { attempts, hedges, violations };
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

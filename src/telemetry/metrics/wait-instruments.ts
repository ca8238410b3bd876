import type { Constructors } from './metric-constructors.ts';

/** Bucket bounds for waits in a queue, in seconds. */
const waitBuckets = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];

/** Requests in progress, and those of them that wait. */
export function waitInstruments({ gaugeBy, histogramBy }: Constructors) {
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

import type { ShadowReports } from '../../domain/shadows/shadow-book.ts';
import type { RatioKind } from '../../domain/shadows/compare-answers.ts';
import type { Constructors } from './series.ts';

/** Bounds of ratios: close to 1, where two routes are equal, and far from it. */
const ratioBuckets = [0.1, 0.25, 0.5, 0.67, 0.8, 0.9, 0.95, 1, 1.05, 1.1, 1.25, 1.5, 2, 4, 10];

/** Shadow traffic: copies of requests that go to a second upstream. */
export function shadowInstruments({ counterBy, histogramBy }: Constructors) {
  return {
    shadowRequests: counterBy(
      ['model', 'outcome'],
      'textgate_shadow_requests_total',
      'Ended shadow requests, by outcome; those that were stopped by why: client_closed, cancelled, crashed or drained.',
    ),
    shadowsSkipped: counterBy(
      ['model', 'reason'],
      'textgate_shadow_skipped_total',
      'Requests that would have got a shadow: too many were in progress, the budget of the day was spent, the upstream failed, its limits left no permit free, or its protocol has no stop sequences.',
    ),
    shadowsCompared: counterBy(
      ['model', 'verdict'],
      'textgate_shadow_compared_total',
      'Answers compared with those of their shadows: same, other finish_reason, other outcome.',
    ),
    shadowRatio: histogramBy(
      ['model', 'kind'],
      'textgate_shadow_ratio',
      "A finished shadow's length, time to first text, total time and cost, divided by those of the answer that the client got.",
      ratioBuckets,
    ),
    shadowSpent: counterBy(
      ['model'],
      'textgate_shadow_spent_nanos_total',
      'Cost of shadow requests by the price of their route, in billionths of a USD; no key pays it.',
    ),
  };
}

/** The events of shadows as metrics. */
export function shadowReports(instruments: ReturnType<typeof shadowInstruments>): ShadowReports {
  const { shadowRequests, shadowsSkipped, shadowsCompared, shadowRatio, shadowSpent } = instruments;
  return {
    skipped: (model, reason) => shadowsSkipped(model, reason).inc(),
    ended(model, outcome, costNanos) {
      shadowRequests(model, outcome).inc();
      if (costNanos > 0) shadowSpent(model).inc(costNanos);
    },
    compared(model, { verdict, ratios }) {
      shadowsCompared(model, verdict).inc();
      for (const [kind, ratio] of Object.entries(ratios) as [RatioKind, number][])
        shadowRatio(model, kind).observe(ratio);
    },
  };
}

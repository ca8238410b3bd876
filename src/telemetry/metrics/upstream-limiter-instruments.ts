import type { PermitSummary } from '../../domain/exchange-summary.ts';
import type { LimitsView, LimiterView } from '../../domain/ports/upstream-limiters.ts';
import type { Figures } from './figures.ts';
import type { Constructors } from './series.ts';

/** Bucket bounds for waits for an upstream, in seconds; the first one has those that did not wait. */
const waitBuckets = [0, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600];

/** The label of what concerns all models of an upstream together; others have limits of their own. */
const allModels = '';

/** Why a request got no permit at an upstream with limits. */
const permitRefusals = ['full', 'timed_out'] as const;

/** The metrics of upstreams with limits. */
export type UpstreamLimiterInstruments = ReturnType<typeof upstreamLimiterInstruments>;

/** How upstreams with limits are used, and who waits for them: of all models together, and of each with limits of its own. */
export function upstreamLimiterInstruments({ counterBy, histogramBy }: Constructors, { figuresBy }: Figures) {
  const instruments = {
    permitWaits: histogramBy(
      ['upstream', 'model'],
      'textgate_upstream_wait_seconds',
      'How long requests waited for an upstream with limits; 0 for those that did not wait. Those for a model with limits of its own are in its series, too.',
      waitBuckets,
    ),
    permitRefusals: counterBy(
      ['upstream', 'model', 'reason'],
      'textgate_upstream_queue_refusals_total',
      'Requests refused because no more may wait for an upstream with limits (full), or because they waited too long (timed_out); one for which several were possible counts at each. Those for a model with limits of its own are in its series, too.',
    ),
  };
  /** A limit that is not set has no series. */
  const ofLimits = (name: string, help: string, figureOf: (limits: LimitsView) => number | null): void =>
    figuresBy(['upstream', 'model'], name, help, 'sum', ({ upstreamLimiters }) =>
      limitsIn(upstreamLimiters()).flatMap(({ limits, ...labels }) => {
        const value = figureOf(limits);
        return value === null ? [] : [{ labels, value }];
      }),
    );
  ofLimits(
    'textgate_upstream_in_flight',
    'Requests in progress at an upstream with limits, and at each of its models that has limits of its own; at an upstream that has none beside those, the requests for these models alone.',
    ({ inFlight }) => inFlight,
  );
  ofLimits(
    'textgate_upstream_in_flight_limit',
    'The most requests that an upstream, or a model there, may have in progress, by its config or as learned from its answers; absent without such a limit.',
    ({ maxInFlight }) => maxInFlight,
  );
  ofLimits(
    'textgate_upstream_waiting',
    'Requests that wait for an upstream with limits, and for each of its models that has limits of its own; one that waits for several counts at each.',
    ({ waiting }) => waiting,
  );
  return instruments;
}

/** The limits of upstreams, each of all of its models together, and of each model with limits of its own. */
function limitsIn(
  views: readonly LimiterView[],
): readonly { readonly upstream: string; readonly model: string; readonly limits: LimitsView }[] {
  return views.flatMap((view) => [
    { upstream: view.upstream, model: allModels, limits: view },
    ...view.models.map((limits) => ({ upstream: view.upstream, model: limits.model, limits })),
  ]);
}

/** Begins the series of refusals of the upstreams with limits: an alert on them needs the series before the first one. */
export function beginRefusals(
  views: readonly LimiterView[],
  { permitRefusals: refusals }: UpstreamLimiterInstruments,
): void {
  for (const { upstream, model } of limitsIn(views))
    for (const reason of permitRefusals) refusals(upstream, model, reason).inc(0);
}

/** Counts what became of an ended request's need for permits. */
export function countPermits(permits: PermitSummary | null, instruments: UpstreamLimiterInstruments): void {
  if (permits === null) return;
  const { refusal, upstream, limitedModel, waitMs } = permits;
  if (refusal !== null) {
    const { upstreams, models, kind } = refusal;
    for (const refusing of upstreams) instruments.permitRefusals(refusing, allModels, kind).inc();
    for (const refusing of models) instruments.permitRefusals(refusing.upstream, refusing.model, kind).inc();
  } else if (upstream !== null) {
    const names = limitedModel === null ? [allModels] : [allModels, limitedModel];
    for (const model of names) instruments.permitWaits(upstream, model).observe(waitMs / 1_000);
  }
}

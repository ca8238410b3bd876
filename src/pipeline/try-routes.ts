import { isRetryable } from '../shared/errors.ts';
import type { OfferedModel, Route } from '../domain/routing.ts';
import type { AttemptResult, UpstreamHealth } from '../domain/upstream-health.ts';
import type { TextRequest } from '../protocol/text.ts';
import { attempt } from './attempt.ts';
import type { OpenedAnswer } from './attempt.ts';
import type { FailedEnding } from './endings.ts';
import type { Exchange, Ports } from './exchange.ts';

/** How many attempts one request may cost, however many routes there are. */
const maxAttempts = 4;

/** Results after which another upstream may do better: the request itself was not at fault, and is still wanted. */
const mayGoElsewhere: Readonly<Record<AttemptResult, boolean>> = {
  ok: false,
  refused: false,
  interrupted: false,
  rate_limited: true,
  overloaded: true,
  auth: true,
  stale: true,
  unreachable: true,
  timeout: true,
  error: true,
  invalid: true,
  truncated: true,
};

/**
 * Tries a model's routes until one answers. Nothing has gone out to the client by then, so none of the attempts before
 * can be told from the answer; after the first good event there is no other attempt.
 */
export async function tryRoutes(
  request: TextRequest,
  model: OfferedModel,
  routes: readonly Route[],
  exchange: Exchange,
  ports: Ports,
): Promise<OpenedAnswer | FailedEnding> {
  const capped = capOutput(request, model, exchange, ports);
  const untried = [...routes];
  const retried = new Set<Route>();
  let failure: FailedEnding | null = null;
  for (let attempts = 0; attempts < maxAttempts; attempts++) {
    const route = takeBest(untried, failure === null, ports.health);
    if (route === null) break;
    exchange.notes.route = route;
    const made = await attempt(capped, route, exchange, ports);
    if (!('ending' in made)) return made;
    failure = failure === null ? made.ending : moreTelling(failure, made.ending);
    const isOver = made.ending.outcome === 'total_timeout' || exchange.interruption.signal.aborted;
    if (!mayGoElsewhere[made.result] || isOver) return failure;
    if (made.result === 'stale' && !retried.has(route)) untried.unshift(route);
    retried.add(route);
  }
  if (failure === null) throw new Error('a model without a route');
  return failure;
}

/**
 * Takes the first route whose upstream is well, else the first at all: one that may answer is better than an error that
 * is certain. An upstream that asked for a pause is only disturbed when nothing else was tried.
 */
function takeBest(routes: Route[], isFirst: boolean, health: UpstreamHealth): Route | null {
  const at = (wanted: string): number =>
    routes.findIndex(({ upstream }) => health.availability(upstream) === wanted);
  const found = [at('available'), at('failing'), isFirst ? at('cooling') : -1].find((index) => index !== -1);
  return found === undefined ? null : (routes.splice(found, 1)[0] ?? null);
}

/** Of two failures the client is told the one that it can wait for; else the later one. */
function moreTelling(earlier: FailedEnding, later: FailedEnding): FailedEnding {
  return isRetryable(earlier.refusal.code) && !isRetryable(later.refusal.code) ? earlier : later;
}

/** A hold that is to be a bound needs a cap on the answer, whether the client gave one or not. */
function capOutput(
  request: TextRequest,
  model: OfferedModel,
  { notes }: Exchange,
  ports: Ports,
): TextRequest {
  if (ports.balanceMode === 'soft' || notes.holdNanos === null || request.maxOutputTokens !== null)
    return request;
  return { ...request, maxOutputTokens: model.holdTokens };
}

import { isRetryable, refuse } from '../shared/errors.ts';
import type { Destination, OfferedModel, Route } from '../domain/routing.ts';
import type { AttemptResult } from '../domain/attempt-result.ts';
import type { UpstreamHealth } from '../domain/upstream-health.ts';
import type { TextRequest } from '../protocol/text.ts';
import { attempt } from './attempt.ts';
import type { OpenedAnswer } from './attempt.ts';
import { failedEnding } from './endings.ts';
import type { FailedEnding } from './endings.ts';
import type { Exchange, Ports } from './exchange.ts';

/** How many attempts one request may cost, however many routes there are. */
const maxAttempts = 4;

/** What must be left of a request's time for another attempt, in milliseconds. */
const minLeftMs = 100;

/** Results after which another upstream may do better: the request itself was not at fault, and is still wanted. */
const mayGoElsewhere: Readonly<Record<AttemptResult, boolean>> = {
  ok: false,
  refused: false,
  interrupted: false,
  rate_limited: true,
  overloaded: true,
  auth: true,
  unserved: true,
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
  { model, routes }: Destination,
  exchange: Exchange,
  ports: Ports,
): Promise<OpenedAnswer | FailedEnding> {
  const { notes, interruption } = exchange;
  const asked = askable(request, model, exchange, ports);
  const untried = [...routes];
  const stale = new Set<Route>();
  const startMs = notes.dispatchedMs ?? ports.clock.monotonicMs();
  const deadlineMs = startMs + Math.max(...routes.map(({ totalMs }) => totalMs));
  let failure: Failure | null = null;
  for (let attempts = 0; attempts < maxAttempts; attempts++) {
    const leftMs = deadlineMs - ports.clock.monotonicMs();
    const route = takeBest(untried, ports.health);
    if (route === null || (failure !== null && leftMs < minLeftMs)) break;
    notes.route = route;
    const made = await attempt(asked, { route, leftMs, fresh: stale.has(route) }, exchange, ports);
    if (!('ending' in made)) return made;
    if (!mayGoElsewhere[made.result] || interruption.signal.aborted) return made.ending;
    failure = moreTelling(failure, { route, ending: made.ending });
    if (made.result === 'stale' && !stale.has(route)) untried.unshift(route);
    if (made.result === 'stale') stale.add(route);
  }
  if (failure === null) return allCooling(routes, ports.health);
  notes.route = failure.route;
  return failure.ending;
}

/**
 * Takes the first route whose upstream is well, else the first that may be asked at all: an answer that may come is
 * better than an error that is certain. An upstream that asked for a pause gets it.
 */
function takeBest(routes: Route[], health: UpstreamHealth): Route | null {
  const at = (wanted: string): number =>
    routes.findIndex(({ upstream }) => health.availability(upstream) === wanted);
  const found = [at('available'), at('failing')].find((index) => index !== -1);
  return found === undefined ? null : (routes.splice(found, 1)[0] ?? null);
}

/** Every upstream asked for a pause: the client is told when the first of them is over. */
function allCooling(routes: readonly Route[], health: UpstreamHealth): FailedEnding {
  const retryAfterMs = Math.ceil(Math.min(...routes.map(({ upstream }) => health.coolingMs(upstream))));
  const refusal = refuse(
    'upstream_rate_limited',
    "The model's provider is limiting this service's requests, and asked for a pause that is not over.",
    { limit: { source: 'upstream', kind: 'rate', limit: null, retryAfterMs } },
  );
  return failedEnding({ refusal, usage: null });
}

/** A failed attempt, as the client may be told of it. */
interface Failure {
  readonly route: Route;
  readonly ending: FailedEnding;
}

/** Of two failures the client is told the one that it can wait for; else the later one. */
function moreTelling(earlier: Failure | null, later: Failure): Failure {
  if (earlier === null || isRetryable(later.ending.refusal.code)) return later;
  return isRetryable(earlier.ending.refusal.code) ? earlier : later;
}

/**
 * The request as upstreams get it. A hold that is to be a bound needs a cap on the answer, whether the client gave one
 * or not. Where there is a choice of upstreams a whole answer is asked for as a stream, too: silence means nothing before
 * a whole answer comes, so one that hangs would be noticed too late for another.
 */
function askable(
  request: TextRequest,
  { routes, holdTokens }: OfferedModel,
  { notes }: Exchange,
  { balanceMode }: Ports,
): TextRequest {
  const isBound = balanceMode === 'strict' && notes.holdNanos !== null;
  const maxOutputTokens = request.maxOutputTokens ?? (isBound ? holdTokens : null);
  return { ...request, maxOutputTokens, stream: request.stream || routes.length > 1 };
}

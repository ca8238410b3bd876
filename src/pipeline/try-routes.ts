import { isRetryable } from '../shared/errors.ts';
import { failures } from '../domain/failure.ts';
import type { Route } from '../domain/routing.ts';
import type { UpstreamHealth } from '../domain/upstream-health.ts';
import type { UpstreamRequest } from '../protocol/text.ts';
import { attempt } from './attempt.ts';
import type { FailedAttempt, OpenedAnswer } from './attempt.ts';
import type { Exchange } from './exchange.ts';
import type { Ports } from './ports.ts';
import type { FailedEnding } from './results.ts';
import type { Dispatched, TextWork } from './stages.ts';

/** How many attempts one request may cost, however many routes there are. */
const maxAttempts = 4;

/** What must be left of a request's time for another attempt, in milliseconds. */
const minLeftMs = 100;

/**
 * Tries a model's routes until one answers. Nothing has gone out to the client by then, so none of the attempts before
 * can be told from the answer; after the first good part there is no other attempt.
 */
export async function tryRoutes(
  request: UpstreamRequest,
  { routes, received }: TextWork,
  { dispatchedMs, attempts }: Dispatched,
  exchange: Exchange,
  ports: Ports,
): Promise<OpenedAnswer | FailedEnding> {
  const untried = [...routes];
  const stale = new Set<Route>();
  const deadlineMs = dispatchedMs + Math.max(...routes.map(({ totalMs }) => totalMs));
  let told: FailedAttempt | null = null;
  for (let made = 0; made < maxAttempts; made++) {
    const leftMs = deadlineMs - ports.clock.monotonicMs();
    const route = takeBest(untried, ports.health);
    if (route === null || (told !== null && leftMs < minLeftMs)) break;
    const terms = { route, leftMs, fresh: stale.has(route), attempts, received };
    const tried = await attempt(request, terms, exchange, ports);
    if (tried.kind === 'opened') return tried;
    const { ending } = tried;
    if (ending.kind === 'interrupted' || exchange.interruption.signal.aborted) return ending;
    const { kind } = ending.failure;
    if (!failures[kind].mayGoElsewhere) return ending;
    told = moreTelling(told, tried);
    if (kind === 'stale' && !stale.has(route)) untried.unshift(route);
    if (kind === 'stale') stale.add(route);
  }
  if (told === null) return allCooling(routes, ports.health);
  attempts.tell(told.logged);
  return told.ending;
}

/**
 * The request as upstreams get it. A hold that is to be a bound needs a cap on the answer, whether the client gave one
 * or not. Where there is a choice of upstreams a whole answer is asked for as a stream, too: silence means nothing before
 * a whole answer comes, so one that hangs would be noticed too late for another.
 */
export function toUpstreamRequest({ request, model, routes }: TextWork, isBound: boolean): UpstreamRequest {
  return {
    turns: request.turns,
    stream: request.stream || routes.length > 1,
    maxOutputTokens: request.maxOutputTokens ?? (isBound ? model.holdTokens : null),
  };
}

/**
 * Takes the first route whose upstream is well, else the first that may be used at all: an answer that may come is
 * better than an error that is certain. An upstream that asked for a pause gets it.
 */
function takeBest(routes: Route[], health: UpstreamHealth): Route | null {
  const at = (wanted: string): number =>
    routes.findIndex(({ upstream }) => health.availability(upstream) === wanted);
  const found = [at('available'), at('failing')].find((index) => index !== -1);
  return found === undefined ? null : (routes.splice(found, 1)[0] ?? null);
}

/** Every upstream asked for a pause: the client gets the time until the first of them is over. */
function allCooling(routes: readonly Route[], health: UpstreamHealth): FailedEnding {
  const retryAfterMs = Math.ceil(Math.min(...routes.map(({ upstream }) => health.coolingMs(upstream))));
  return {
    kind: 'failed',
    failure: { kind: 'cooling', detail: '', retryAfterMs, cause: null },
    usage: null,
  };
}

/** Of two failures the client gets the one that a retry may mend; else the later one. */
function moreTelling(earlier: FailedAttempt | null, later: FailedAttempt): FailedAttempt {
  if (earlier === null || isRetryableEnding(later)) return later;
  return isRetryableEnding(earlier) ? earlier : later;
}

function isRetryableEnding({ ending }: FailedAttempt): boolean {
  return ending.kind === 'failed' && isRetryable(failures[ending.failure.kind].code);
}

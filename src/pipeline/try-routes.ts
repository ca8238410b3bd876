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

/** The most attempts for one request, however many routes there are. */
const maxAttempts = 4;

/** The time that must be left for another attempt, in milliseconds. */
const minLeftMs = 100;

/**
 * Tries a model's routes until one answers. Nothing has been sent to the client by then, so earlier attempts leave no
 * trace in the answer; after the first good part there is no other attempt.
 */
export async function tryRoutes(
  request: UpstreamRequest,
  { routes, received }: TextWork,
  { dispatchedMs, attempts }: Dispatched,
  exchange: Exchange,
  ports: Ports,
): Promise<OpenedAnswer | FailedEnding> {
  const untried = [...routes];
  const stale: Route[] = [];
  let longestMs = 0;
  for (const { totalMs } of routes) longestMs = Math.max(longestMs, totalMs);
  const deadlineMs = dispatchedMs + longestMs;
  let reported: FailedAttempt | null = null;
  for (let made = 0; made < maxAttempts; made++) {
    const leftMs = deadlineMs - ports.clock.monotonicMs();
    const route = takeBest(untried, ports.health);
    if (route === null || (reported !== null && leftMs < minLeftMs)) break;
    const terms = { route, leftMs, fresh: stale.includes(route), attempts, received };
    const tried = await attempt(request, terms, exchange, ports);
    if (tried.kind === 'opened') return tried;
    const { ending } = tried;
    if (ending.kind === 'interrupted' || exchange.interruption.signal.aborted) return ending;
    const { kind } = ending.failure;
    if (!failures[kind].mayGoElsewhere) return ending;
    reported = moreUseful(reported, tried);
    if (kind === 'stale' && !stale.includes(route)) untried.unshift(route);
    if (kind === 'stale') stale.push(route);
  }
  if (reported === null) return allCooling(routes, ports.health);
  attempts.reportFailureOf(reported.logged);
  return reported.ending;
}

/**
 * The request as it is sent upstream. A hold that must cover the cost needs an output cap, even if the client gave
 * none. With several routes a whole answer is requested as a stream, too: an upstream that hangs before a whole answer
 * looks like one that works, and would be noticed too late for another attempt.
 */
export function toUpstreamRequest({ request, model, routes }: TextWork, isBound: boolean): UpstreamRequest {
  return {
    turns: request.turns,
    stream: request.stream || routes.length > 1,
    maxOutputTokens: request.maxOutputTokens ?? (isBound ? model.holdTokens : null),
  };
}

/**
 * Takes the first route whose upstream is available, else the first whose upstream is failing: a possible answer is
 * better than a certain error. An upstream that asked for a pause is not called.
 */
function takeBest(routes: Route[], health: UpstreamHealth): Route | null {
  let failing = -1;
  for (const [at, { upstream }] of routes.entries()) {
    const availability = health.availability(upstream);
    if (availability === 'available') return routes.splice(at, 1)[0] ?? null;
    if (availability === 'failing' && failing === -1) failing = at;
  }
  return failing === -1 ? null : (routes.splice(failing, 1)[0] ?? null);
}

/** The failure when every upstream asked for a pause; `retry-after` is the time until the first pause ends. */
function allCooling(routes: readonly Route[], health: UpstreamHealth): FailedEnding {
  const pauses = new Map(routes.map(({ upstream }) => [upstream, health.coolingMs(upstream)]));
  const retryAfterMs = Math.ceil(Math.min(...pauses.values()));
  const cause = [...pauses]
    .map(
      ([upstream, leftMs]) => `${upstream} asked for a pause, which ends in ${Math.ceil(leftMs / 1_000)} s`,
    )
    .join('; ');
  return {
    kind: 'failed',
    failure: { kind: 'cooling', detail: '', retryAfterMs, cause, upstreamError: null },
    usage: null,
  };
}

/** Of two failures the client gets the retryable one, else the later one. */
function moreUseful(earlier: FailedAttempt | null, later: FailedAttempt): FailedAttempt {
  if (earlier === null || isRetryableEnding(later)) return later;
  return isRetryableEnding(earlier) ? earlier : later;
}

function isRetryableEnding({ ending }: FailedAttempt): boolean {
  return ending.kind === 'failed' && isRetryable(failures[ending.failure.kind].code);
}

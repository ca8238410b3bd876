import type { Route } from '../../domain/routing.ts';
import type { UpstreamHealth } from '../../domain/upstreams/upstream-health.ts';
import type { UpstreamRequest } from '../../protocol/text.ts';
import { attempt } from './attempt.ts';
import type { AttemptLog } from './attempt-log.ts';
import type { Exchange } from '../exchange.ts';
import { FailedAttempts } from './failed-attempts.ts';
import type { FailedAttempt, OpenedAnswer } from './first-part.ts';
import { attemptHedged } from './hedge.ts';
import type { HedgeTerms } from './hedge.ts';
import type { Ports } from '../ports.ts';
import type { FailedEnding } from '../results.ts';
import type { RequestPermits } from '../permits/request-permits.ts';
import type { Dispatched, TextWork } from '../stages.ts';

/** The most attempts for one request, however many routes there are. */
const maxAttempts = 4;

/** The time that must be left for another attempt, in milliseconds. */
const minLeftMs = 100;

/**
 * Tries a model's routes until one answers. Nothing has been sent to the client by then, so earlier attempts leave no
 * trace in the answer; after the first good part there is no other attempt. A request that needs permits has one for each
 * attempt, may wait for it, and may come back to an upstream that was asked too early; its waits take nothing of its time.
 */
export async function tryRoutes(
  request: UpstreamRequest,
  { model, routes, received }: TextWork,
  { key: { id: keyId }, dispatchedMs, attempts }: Dispatched,
  exchange: Exchange,
  ports: Ports,
): Promise<OpenedAnswer | FailedEnding> {
  const { clock, health } = ports;
  const untried = [...routes];
  let longestMs = 0;
  for (const { totalMs } of routes) longestMs = Math.max(longestMs, totalMs);
  const deadlineMs = dispatchedMs + longestMs;
  const { permits } = exchange;
  const leftNow = (): number => deadlineMs + (permits?.laterWaitMs ?? 0) - clock.monotonicMs();
  const failed = new FailedAttempts(exchange.interruption.signal);
  const addFailure = (tried: FailedAttempt): void => {
    if (failed.add(tried)) untried.unshift(tried.route);
    else if (permits?.mayReturn(tried) === true) untried.push(tried.route);
  };
  const { hedge: policy } = model;
  const hedge: HedgeTerms | null =
    policy === undefined
      ? null
      : {
          policy,
          model: model.id,
          takeOther: () => takeOther(untried, leftNow(), { keyId, attempts, permits, health }),
          addFailure,
          failed,
        };
  while (attempts.count < maxAttempts && !failed.isLate) {
    const route = permits === null ? takeBest(untried, keyId, health) : await permits.next(untried);
    const leftMs = leftNow();
    if (route === null || (failed.reported !== null && leftMs < minLeftMs)) break;
    const permit = permits === null ? null : permits.permit;
    const fresh = failed.isStale(route);
    const terms = { route, keyId, permit, leftMs, fresh, attempts, received, race: null };
    const tried =
      hedge === null
        ? await attempt(request, terms, exchange, ports)
        : await attemptHedged(request, terms, hedge, exchange, ports);
    if (tried.kind === 'opened') return tried;
    if (failed.isFinal(tried)) {
      if (tried.ending.kind === 'failed') attempts.report(tried.logged);
      return tried.ending;
    }
    addFailure(tried);
    // A client that leaves while the request waits for its next upstream must not pay for what this one thought.
    received.reset();
  }
  const { reported } = failed;
  if (reported === null) return allCooling(routes, health);
  attempts.report(reported.logged);
  return reported.ending;
}

/**
 * The request as it is sent upstream, in whole characters: half a surrogate pair becomes U+FFFD, as servers answer an escape
 * of one with errors of their own. A hold that must cover the cost needs an output cap, even if the client gave
 * none. With several routes a whole answer is requested as a stream, too: an upstream that hangs before a whole answer
 * looks like one that works, and would be noticed too late for another attempt.
 */
export function toUpstreamRequest({ request, model, routes }: TextWork, isBound: boolean): UpstreamRequest {
  const { turns, stop } = request;
  return {
    turns: turns.every(({ text }) => text.isWellFormed())
      ? turns
      : turns.map(({ role, text }) => ({ role, text: text.toWellFormed() })),
    stream: request.stream || routes.length > 1,
    maxOutputTokens: request.maxOutputTokens ?? (isBound ? model.holdTokens : null),
    stop: stop.length === 0 ? stop : stop.map((text) => text.toWellFormed()),
  };
}

/**
 * Takes the first route that is available, else the first that is failing: a possible answer is better than a certain error.
 * One that asked for a pause is not called.
 */
function takeBest(routes: Route[], keyId: string, health: UpstreamHealth): Route | null {
  let failing = -1;
  for (const [at, route] of routes.entries()) {
    const availability = health.availability(route, keyId);
    if (availability === 'available') return routes.splice(at, 1)[0] ?? null;
    if (availability === 'failing' && failing === -1) failing = at;
  }
  return failing === -1 ? null : (routes.splice(failing, 1)[0] ?? null);
}

/** What decides on a second request. */
interface OtherTerms {
  readonly keyId: string;
  readonly attempts: AttemptLog;
  readonly permits: RequestPermits | null;
  readonly health: UpstreamHealth;
}

/** Takes the first route that is available and has a permit free, if one more attempt may be made; `null` otherwise. */
function takeOther(
  routes: Route[],
  leftMs: number,
  { keyId, attempts, permits, health }: OtherTerms,
): ReturnType<HedgeTerms['takeOther']> {
  if (attempts.count >= maxAttempts || leftMs < minLeftMs) return null;
  if (permits !== null) {
    const taken = permits.takeFree(routes);
    return taken === null ? null : { ...taken, leftMs };
  }
  const at = routes.findIndex((route) => health.availability(route, keyId) === 'available');
  const [route] = at === -1 ? [] : routes.splice(at, 1);
  return route === undefined ? null : { route, permit: null, leftMs };
}

/** The failure when every route asked for a pause; `retry-after` is the time until the first pause ends. */
function allCooling(routes: readonly Route[], health: UpstreamHealth): FailedEnding {
  const pauses = routes.map((route) => health.coolingMs(route));
  const retryAfterMs = Math.ceil(Math.min(...pauses));
  const causes = routes.map(({ upstream, model }, at) => {
    const seconds = Math.ceil((pauses[at] ?? 0) / 1_000);
    return `${upstream}: ${model} is paused by the provider (retry-after), which ends in ${seconds} s`;
  });
  const cause = [...new Set(causes)].join('; ');
  return {
    kind: 'failed',
    failure: { kind: 'cooling', detail: '', retryAfterMs, cause, upstreamError: null },
    usage: null,
  };
}

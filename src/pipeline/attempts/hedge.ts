import { hedgeDelayMs } from '../../domain/routing/hedging.ts';
import type { HedgePolicy } from '../../domain/routing/hedging.ts';
import type { UpstreamRequest } from '../../protocol/text.ts';
import { attempt } from './attempt.ts';
import type { AttemptTerms } from './attempt.ts';
import type { AttemptLog, LoggedAttempt } from './attempt-log.ts';
import { Race } from './attempt-stop.ts';
import type { Exchange } from '../exchange.ts';
import type { FailedAttempts } from './failed-attempts.ts';
import type { FailedAttempt, OpenedAnswer } from './first-part.ts';
import type { Ports } from '../ports.ts';
import { nothingUsed } from '../permits/held-permit.ts';
import { ReceivedAnswer } from './received-answer.ts';

/** When a second request may be sent beside an attempt, and where to. */
export interface HedgeTerms {
  readonly policy: HedgePolicy;
  /** The name of the offered model. */
  readonly model: string;
  /** Takes the route of a second request, its permit there, and the rest of the total time; `null` if none may be sent. */
  readonly takeOther: () => Pick<AttemptTerms, 'route' | 'permit' | 'leftMs'> | null;
  /** Adds a failure that does not end the request, whose route may be tried once more. */
  readonly addFailure: (tried: FailedAttempt) => void;
  readonly failed: FailedAttempts;
}

type Tried = OpenedAnswer | FailedAttempt;

/** An attempt whose first text is awaited. */
interface Running {
  readonly kind: 'running';
  readonly received: ReceivedAnswer;
  /** Its entry in the log; `null` if it could not begin. */
  readonly logged: LoggedAttempt | null;
  readonly tried: Promise<Tried>;
}

/**
 * Makes an attempt, and a second one beside it at another route if the first text is late: the first of them with text
 * goes on, and the other is stopped. A complete answer without text counts once the other one has failed, or has none, too.
 * A client's request has at most one such second request, and none after a text. If both
 * fail, the last failure is returned, and the one before is added to `failed`.
 */
export async function attemptHedged(
  request: UpstreamRequest,
  terms: AttemptTerms,
  hedge: HedgeTerms,
  exchange: Exchange,
  ports: Ports,
): Promise<Tried> {
  const { policy, model } = hedge;
  const { clock, hedges } = ports;
  hedges.sent(model, policy);
  const { attempts, route } = terms;
  const delayMs = attempts.hedge === null ? hedgeDelayMs(policy, route.measure, clock.monotonicMs()) : null;
  if (delayMs === null) return attempt(request, terms, exchange, ports);
  const race = new Race();
  const first = start(request, { ...terms, race }, exchange, ports);
  const begun = Promise.withResolvers<Running>();
  const cancel = clock.schedule(delayMs, () => {
    const second = startSecond(request, { ...terms, race }, hedge, exchange, ports);
    if (second !== null) begun.resolve(second);
  });
  try {
    const earlier = await Promise.race([first.tried, begun.promise]);
    if (earlier.kind !== 'running') return earlier;
    return await awaitBoth({ first, second: earlier }, { ...hedge, race }, attempts, ports);
  } catch (error) {
    // The other attempt would go on, and its answer would not be released.
    race.stop();
    throw error;
  } finally {
    cancel();
  }
}

function start(request: UpstreamRequest, terms: AttemptTerms, exchange: Exchange, ports: Ports): Running {
  const { attempts, received } = terms;
  const tried = attempt(request, terms, exchange, ports);
  return { kind: 'running', received, logged: attempts.reported, tried };
}

/** Starts the second request, if the budget allows it and there is a route for it. The first one stays the reported one. */
function startSecond(
  request: UpstreamRequest,
  terms: AttemptTerms,
  { model, takeOther, failed }: HedgeTerms,
  exchange: Exchange,
  ports: Ports,
): Running | null {
  const { attempts } = terms;
  if (terms.race?.isRunning !== true) return null;
  if (!ports.hedges.spend(model)) {
    attempts.hedge = 'refused';
    return null;
  }
  const other = takeOther();
  if (other === null) {
    ports.hedges.giveBack(model);
    return null;
  }
  attempts.hedge = 'failed';
  const { reported } = attempts;
  // What comes of the thoughts of an answer that is not used must not be charged.
  const received = new ReceivedAnswer();
  const fresh = failed.isStale(other.route);
  const second = start(request, { ...terms, ...other, fresh, received }, exchange, ports);
  if (reported !== null) attempts.report(reported);
  // If the first attempt throws, this one is not awaited: its error would end the process, and its permit would be lost.
  second.tried.catch(() => other.permit?.release(nothingUsed, null));
  return second;
}

/**
 * Waits for the first text of both attempts, or for the failure of both. What the client gets never is worse than without
 * the second one: where that is refused, the first one may still answer, and only if it fails, too, the refusal goes out, as
 * it would have if the second route had been tried then. A refusal of the first one ends both, as it ends any request.
 */
async function awaitBoth(
  { first, second }: { readonly first: Running; readonly second: Running },
  { race, failed, addFailure }: Pick<HedgeTerms, 'failed' | 'addFailure'> & { readonly race: Race },
  attempts: AttemptLog,
  { telemetry }: Ports,
): Promise<Tried> {
  const { running, tried } = await Promise.race([settled(first), settled(second)]);
  const other = running === first ? second : first;
  const drop = (): void =>
    void other.tried.catch((error: unknown) => telemetry.fault('attempt failed unexpectedly', error));
  const opened = (winner: Running, answer: OpenedAnswer): OpenedAnswer => {
    if (answer.first.deltas.length > 0) attempts.hedge = winner === second ? 'won' : 'lost';
    if (winner === second) first.received.follow(second.received);
    return answer;
  };
  if (tried.kind === 'opened') {
    drop();
    return opened(running, tried);
  }
  // An attempt that was stopped because the other one has text may end before that one.
  const isFinal = !race.isOver && failed.isFinal(tried);
  if (isFinal && running === first) {
    race.stop();
    drop();
    return tried;
  }
  // At once: whether its route may be tried again is a matter of this moment.
  if (!isFinal && !race.isOver) addFailure(tried);
  // A client that leaves from now on pays for the second one's work, by the rule of its upstream.
  if (running === first && !race.isOver) {
    first.received.follow(second.received);
    if (second.logged !== null) attempts.report(second.logged);
  }
  race.failed();
  const last = await other.tried;
  if (last.kind === 'opened') return opened(other, last);
  return isFinal && !failed.isFinal(last) ? tried : last;
}

async function settled(running: Running): Promise<{ readonly running: Running; readonly tried: Tried }> {
  return { running, tried: await running.tried };
}

import type { Refusal } from '../../shared/errors.ts';
import type { ExchangeSummary } from '../../domain/exchange-summary.ts';
import type { AnswerFacts } from '../../domain/shadows/compare-answers.ts';
import type { ShadowBook } from '../../domain/shadows/shadow-book.ts';
import { UpstreamHealth } from '../../domain/upstreams/upstream-health.ts';
import type { UpstreamRequest } from '../../protocol/text.ts';
import type { Exchange } from '../exchange.ts';
import type { Ports, ShadowPort } from '../ports.ts';
import type { ExchangeResult } from '../results.ts';
import { outcomeOf } from '../results.ts';
import { attemptsOf } from '../stage-views.ts';
import { RunningShadow } from './running-shadow.ts';
import type { ShadowPorts } from './running-shadow.ts';
import type { ShadowRoute } from '../../domain/routing.ts';

/** The shadows of one config. */
export interface Shadows extends ShadowPort {
  /** Resolves when the shadows that run now have ended. */
  idle(): Promise<void>;
  /** Stops all shadows; none begins after that. Resolves when they have ended. */
  close(): Promise<void>;
}

/** Makes the shadows of one config. They end when draining begins: no request is worth less than a comparison. */
export function createShadows(
  routes: readonly ShadowRoute[],
  ports: ShadowPorts & Pick<Ports, 'inFlight' | 'random'>,
): Shadows {
  const byModel = new Map(routes.map((route) => [route.model, route]));
  const running = new Set<RunningShadow>();
  // What shadows find out must not change where requests go, and a shadow's upstream that fails must get a rest, too.
  const health = new UpstreamHealth(ports.clock);
  const { draining } = ports.inFlight;
  let isClosed = draining.aborted;
  const stop = (): void => {
    isClosed = true;
    draining.removeEventListener('abort', stop);
    for (const shadow of running) shadow.stop('drained');
  };
  const idle = async (): Promise<void> => {
    await Promise.all([...running].map(({ ended }) => ended));
  };
  draining.addEventListener('abort', stop);
  return {
    begin(model, request, recording, exchange) {
      const route = byModel.get(model);
      if (route === undefined || isClosed || ports.random() >= route.share) return;
      const shadow = new RunningShadow(route, exchange, { ...ports, health });
      exchange.shadow = shadow;
      const start = (refusal: Refusal | null): void => {
        if (refusal !== null || isClosed || exchange.interruption.signal.aborted) return;
        if (!isAble(route, request, ports.book)) return;
        if (!isUsable(route, [ports.health, health], ports.book)) return;
        if (!shadow.start(request)) return;
        running.add(shadow);
        void shadow.ended.then(() => running.delete(shadow));
      };
      // Why the record was not begun is said by the request itself.
      recording
        .then(start, () => {})
        .catch((error: unknown) => ports.telemetry.fault('shadow request not begun', error));
    },
    idle,
    close() {
      stop();
      return idle();
    },
  };
}

/** Whether a shadow's upstream takes the request's stop sequences; else its answer could not be compared, which is counted. */
function isAble(
  { model, route: { dialect } }: ShadowRoute,
  { stop }: UpstreamRequest,
  book: ShadowBook,
): boolean {
  if (stop.length === 0 || dialect.takesStop(stop)) return true;
  book.skipped(model, 'stop');
  return false;
}

/** Whether the upstream of a shadow works, as far as is known; else the request gets no shadow, which is counted. */
function isUsable(
  { model, route }: ShadowRoute,
  healths: readonly UpstreamHealth[],
  book: ShadowBook,
): boolean {
  if (healths.every((health) => health.availability(route, null) === 'available')) return true;
  book.skipped(model, 'upstream');
  return false;
}

/** Says to the shadow of a request, if it has one, how the request ended. */
export function tellShadow(
  result: ExchangeResult,
  summary: ExchangeSummary,
  { shadow, stage }: Pick<Exchange, 'shadow' | 'stage'>,
): void {
  if (shadow === null) return;
  if (result.kind === 'interrupted') return shadow.requestEnded(result.interruption);
  const isAnswer = result.kind === 'finished' || result.kind === 'failed';
  shadow.requestEnded(isAnswer ? factsOf(outcomeOf(result), summary, stage) : 'crashed');
}

/** The answer that the client got, without the attempts that failed before it and without the wait for a slot. */
function factsOf(
  outcome: AnswerFacts['outcome'],
  { finishReason, firstTextMs, chargeNanos }: ExchangeSummary,
  stage: Exchange['stage'],
): AnswerFacts {
  const served = attemptsOf(stage)?.reported ?? null;
  const { startedMs = 0, durationMs = 0 } = served ?? {};
  const textMs = firstTextMs === null ? null : firstTextMs - (startedMs ?? 0);
  const isText = stage.stage === 'recorded' && stage.work.kind === 'text';
  return {
    outcome,
    finishReason,
    characters: isText ? stage.work.received.text.chars : 0,
    firstTextMs: textMs,
    // A short answer may be read to its end before its record is begun, and its first text is sent after that.
    totalMs: Math.max(durationMs, textMs ?? 0),
    costNanos: chargeNanos,
  };
}

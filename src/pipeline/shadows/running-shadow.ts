import { mostTokensOf } from '../../domain/money/hold-estimate.ts';
import { pricedAt } from '../../domain/money/price-changes.ts';
import { defaultWeight } from '../../domain/keys/api-key.ts';
import type { Interruption } from '../results.ts';
import type { AnswerFacts } from '../../domain/shadows/compare-answers.ts';
import type { ShadowBook, RunningCopy } from '../../domain/shadows/shadow-book.ts';
import type { UpstreamRequest } from '../../protocol/text.ts';
import type { AttemptPorts } from '../attempts/attempt.ts';
import { callShadow, expectedCost } from './call-shadow.ts';
import type { Exchange, RequestShadow } from '../exchange.ts';
import { HeldPermit, nothingUsed } from '../permits/held-permit.ts';
import type { Ports } from '../ports.ts';
import type { ShadowRoute } from '../../domain/routing.ts';

/** In a fair queue shadows are one key: they take no turns of clients. */
const shadowsKey = 'shadows';

/** What a shadow needs beside its route. */
export interface ShadowPorts extends AttemptPorts, Pick<Ports, 'upstreamLimiters'> {
  readonly book: ShadowBook;
}

/** A shadow from the beginning of its request on. */
export class RunningShadow implements RequestShadow {
  readonly #route: ShadowRoute;
  readonly #caller: Pick<Exchange, 'stage'> & { readonly authorization: string | undefined };
  readonly #ports: ShadowPorts;
  readonly #interruption = new AbortController();
  readonly #ended = Promise.withResolvers<void>();
  #hasRequestEnded = false;
  #copy: RunningCopy | null = null;
  #answer: AnswerFacts | null = null;
  #own: AnswerFacts | null = null;

  constructor(route: ShadowRoute, { stage, client }: Exchange, ports: ShadowPorts) {
    this.#route = pricedAt(route, ports.clock.now());
    // The exchange itself has the client's connection, which must not be kept for as long as the shadow takes.
    this.#caller = { stage, authorization: client.authorization };
    this.#ports = ports;
  }

  /** Resolves when it has ended. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /** Sends the request, if there is room for it, in its bounds and at its upstream; returns whether it did. */
  start(request: UpstreamRequest): boolean {
    if (this.#interruption.signal.aborted) return false;
    const permit = this.#acquire(request);
    if (permit === 'full') return false;
    const copy = this.#ports.book.begin(this.#route, expectedCost(request, this.#route));
    this.#copy = copy;
    if (copy === null) permit?.release(nothingUsed, null);
    else void this.#run(request, copy, permit);
    return copy !== null;
  }

  /** Stops it, before it was sent or while its answer is read. */
  stop(reason: Interruption): void {
    this.#interruption.abort(reason);
  }

  requestEnded(end: AnswerFacts | Interruption): void {
    if (this.#hasRequestEnded) return;
    this.#hasRequestEnded = true;
    if (typeof end === 'string') return this.stop(end);
    this.#answer = end;
    this.#compare();
  }

  /** Acquires a permit at the upstream; `null` if that has no limits, `full` if there is none, which is counted. */
  #acquire(request: UpstreamRequest): HeldPermit | null | 'full' {
    const { upstreamLimiters, book } = this.#ports;
    const { model, route, holdTokens } = this.#route;
    if (!upstreamLimiters.limits(route)) return null;
    const tokens = { input: mostTokensOf(request.turns), output: request.maxOutputTokens ?? holdTokens };
    const asked = {
      keyId: shadowsKey,
      weight: defaultWeight,
      targets: [route],
      tokens,
    };
    const acquired = upstreamLimiters.tryAcquire(asked);
    if (acquired !== null) return new HeldPermit(acquired);
    book.skipped(model, 'permit');
    return 'full';
  }

  async #run(request: UpstreamRequest, copy: RunningCopy, permit: HeldPermit | null): Promise<void> {
    const { stage, authorization } = this.#caller;
    const caller = {
      stage,
      client: { authorization },
      interruption: this.#interruption,
      // A provider that only gets copies is no part of the client's trace.
      trace: { attempt: () => ({}) },
      arrivedMs: 0,
    };
    const way = { shadow: this.#route, permit };
    const answer = await callShadow(request, way, caller, this.#ports).catch((error: unknown) => {
      this.#ports.telemetry.fault('shadow request failed unexpectedly', error);
      return null;
    });
    this.#ended.resolve();
    if (answer === null) return copy.ended(unexpected, null);
    const { ending, facts } = answer;
    copy.ended(facts, ending.kind === 'failed' ? ending.failure : null);
    if (ending.kind === 'interrupted') return;
    this.#own = facts;
    this.#compare();
  }

  #compare(): void {
    if (this.#answer !== null && this.#own !== null) this.#copy?.compared(this.#answer, this.#own);
  }
}

/** An error in this service. */
const unexpected: AnswerFacts = {
  outcome: 'server_error',
  finishReason: null,
  characters: 0,
  firstTextMs: null,
  totalMs: 0,
  costNanos: 0,
};

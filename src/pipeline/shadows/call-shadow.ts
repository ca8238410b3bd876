import { holdFor } from '../../domain/money/hold-estimate.ts';
import { costOf, priceFor } from '../../domain/money/pricing.ts';
import type { AnswerFacts } from '../../domain/shadows/compare-answers.ts';
import type { UpstreamRequest } from '../../protocol/text.ts';
import { AttemptLog } from '../attempts/attempt-log.ts';
import { attempt } from '../attempts/attempt.ts';
import type { AttemptPorts, Caller } from '../attempts/attempt.ts';
import type { OpenedAnswer } from '../attempts/first-part.ts';
import { nothingUsed } from '../permits/held-permit.ts';
import type { HeldPermit } from '../permits/held-permit.ts';
import type { Ports } from '../ports.ts';
import { ReceivedAnswer } from '../attempts/received-answer.ts';
import { outcomeOf } from '../results.ts';
import type { AttemptEnding } from '../results.ts';
import type { ShadowRoute } from '../../domain/routing.ts';

/** The average length of a token in characters, where the provider reports no usage. */
const charsPerToken = 4;

/** How a shadow ended, and what is kept of its answer. */
export interface ShadowAnswer {
  readonly ending: AttemptEnding;
  readonly facts: AnswerFacts;
}

/** The part of an answer that has arrived: it is counted, and not kept. */
interface Counted {
  characters: number;
  /** On the monotonic clock. */
  firstTextMs: number | null;
}

/** The cost to expect of a shadow, in nano-USD. A cap far above the usual output must not claim the budget of a day. */
export function expectedCost(request: UpstreamRequest, { price, holdTokens }: ShadowRoute): number {
  const outputTokens = Math.min(request.maxOutputTokens ?? holdTokens, holdTokens);
  return estimate(request, outputTokens, price);
}

/** Where a shadow goes. */
export interface ShadowWay {
  readonly shadow: ShadowRoute;
  /** Its permit at the upstream, which is released; `null` where that has no limits. */
  readonly permit: HeldPermit | null;
}

/** Sends a request to a shadow route and reads the answer to its end, as far as `caller` is not interrupted. */
export async function callShadow(
  request: UpstreamRequest,
  way: ShadowWay,
  caller: Caller,
  ports: AttemptPorts,
): Promise<ShadowAnswer> {
  try {
    return await call(request, way, caller, ports);
  } finally {
    // An attempt on a stale connection leaves it to the next one.
    way.permit?.release(nothingUsed, null);
  }
}

async function call(
  request: UpstreamRequest,
  { shadow, permit }: ShadowWay,
  caller: Caller,
  ports: AttemptPorts,
): Promise<ShadowAnswer> {
  const { route } = shadow;
  const attempts = new AttemptLog();
  const received = new ReceivedAnswer();
  const counted: Counted = { characters: 0, firstTextMs: null };
  const { totalMs: leftMs } = route;
  const terms = { route, keyId: null, permit, leftMs, fresh: false, attempts, received, race: null };
  let startedMs = ports.clock.monotonicMs();
  let tried = await attempt(request, terms, caller, ports);
  // A kept connection that was closed meanwhile says nothing about the provider.
  if (tried.kind === 'failed_attempt' && isStale(tried.ending)) {
    startedMs = ports.clock.monotonicMs();
    tried = await attempt(request, { ...terms, fresh: true }, caller, ports);
  }
  const ending = tried.kind === 'opened' ? await readToEnd(tried, counted, ports) : tried.ending;
  const { characters, firstTextMs } = counted;
  const hasProgress = characters > 0 || received.progress(request.stream) !== 'none';
  const outputTokens = Math.ceil((characters + received.thoughts.chars) / charsPerToken);
  return {
    ending,
    facts: {
      outcome: outcomeOf(ending),
      finishReason: ending.kind === 'finished' ? ending.reason : null,
      characters,
      firstTextMs: firstTextMs === null ? null : firstTextMs - startedMs,
      totalMs: ports.clock.monotonicMs() - startedMs,
      costNanos: costOfEnding(ending, hasProgress, { request, outputTokens, price: shadow.price }),
    },
  };
}

async function readToEnd(
  answer: OpenedAnswer,
  counted: Counted,
  { clock }: Pick<Ports, 'clock'>,
): Promise<AttemptEnding> {
  const take = (deltas: readonly string[]): boolean => {
    if (deltas.length > 0) counted.firstTextMs ??= clock.monotonicMs();
    for (const { length } of deltas) counted.characters += length;
    return true;
  };
  try {
    take(answer.first.deltas);
    let { ending } = answer.first;
    while (ending === null) ending = await answer.readOn(take);
    return ending;
  } finally {
    answer.release();
  }
}

/** What the estimate of a cost is made from. */
interface Sizes {
  readonly request: UpstreamRequest;
  readonly outputTokens: number;
  readonly price: ShadowRoute['price'];
}

/** The cost in nano-USD: by the reported usage, else by the sizes of the texts once the provider has begun to work. */
function costOfEnding(
  { kind, usage }: AttemptEnding,
  hasProgress: boolean,
  { request, outputTokens, price }: Sizes,
): number {
  if (usage !== null) return costOf(usage, priceFor(price, usage.inputTokens));
  return kind === 'finished' || hasProgress ? estimate(request, outputTokens, price) : 0;
}

function estimate({ turns }: UpstreamRequest, outputTokens: number, price: ShadowRoute['price']): number {
  return holdFor({ turns, maxOutputTokens: outputTokens }, price, {
    holdTokens: outputTokens,
    strict: false,
  });
}

function isStale(ending: AttemptEnding): boolean {
  return ending.kind === 'failed' && ending.failure.kind === 'stale';
}

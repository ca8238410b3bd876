import type { Outcome, SettledRecord } from '../../domain/money/consumption.ts';
import { mostTokensOf, questionOf, tokensOfTurns } from '../../domain/money/hold-estimate.ts';
import { costOf, noTokens, priceFor } from '../../domain/money/pricing.ts';
import { chargeBasis, isPassagePaid } from '../../domain/money/settlement.ts';
import { TextSample } from '../../protocol/kept-text.ts';
import type { TextTurn, Usage } from '../../protocol/text.ts';
import type { OnDisconnect, Route } from '../../domain/routing.ts';
import type { Ports } from '../ports.ts';
import type { ReceivedAnswer } from '../attempts/received-answer.ts';
import type { Recorded, TokenCeiling } from '../stages.ts';

/** The average length of a token in characters, for estimates when counting fails. */
const charsPerToken = 4;

/** What a request costs, and the usage that it is charged for. */
export type Charge = Pick<SettledRecord, 'usage' | 'usageSource' | 'price' | 'chargeNanos'>;

/** The parts of a request's end that decide its charge. */
interface ChargedEnd {
  readonly outcome: Outcome;
  readonly usage: Usage | null;
  readonly passedStatus: number | null;
}

/**
 * The charge of a request, and whether the upstream's count or our own was used. The upstream's count, if it is
 * plausible, is charged in full in both balance modes, even above the hold. Our own count is, too, except in strict
 * mode: there it is capped at the hold. With a ceiling of costs neither has more tokens than that pays for.
 * `passedStatus` is the status of a head that was passed on, or `null`.
 */
export async function chargeFor(
  { outcome, usage, passedStatus }: ChargedEnd,
  { work, attempts, reservation: { holdNanos } }: Pick<Recorded, 'work' | 'attempts' | 'reservation'>,
  ports: Pick<Ports, 'balanceMode' | 'tokens' | 'telemetry'>,
): Promise<Charge> {
  const usageSource = usage === null ? 'none' : 'upstream';
  const unpaid: Charge = { usage, usageSource, price: null, chargeNanos: 0 };
  if (work.kind === 'passthrough')
    return isPassagePaid(outcome, passedStatus)
      ? { ...unpaid, chargeNanos: costOf(noTokens, work.price) }
      : unpaid;
  const { request, model, received, routes, ceiling } = work;
  const rule = disconnectRuleOf(routes, attempts.upstream);
  const basis = chargeBasis(outcome, rule, received.progress(request.stream), usage !== null);
  if (basis === 'nothing') return unpaid;
  const counted = usage ?? (await countUsage(request.turns, received, ports));
  const used = ceiling === null ? counted : within(ceiling, counted);
  if (usage !== null && used.totalTokens < usage.totalTokens)
    ports.telemetry.fault(
      'more tokens from an upstream than the ceiling of its request pays for: not charged',
      new Error(`${attempts.upstream}: ${usage.inputTokens} of input and ${usage.outputTokens} of output`),
    );
  const price = priceFor(model.price, used.inputTokens);
  const cost = costOf(used, price);
  const isBound = basis === 'counted' && ports.balanceMode === 'strict' && holdNanos !== null;
  return { usage: used, usageSource: basis, price, chargeNanos: isBound ? Math.min(cost, holdNanos) : cost };
}

/**
 * Our own count of the tokens of a request and of the answer received so far, thoughts included. It is made from samples,
 * so that an uneven text could be counted with more tokens than it can have. Where the upstream named counts that don't
 * add up, it counts no more input and output than they have.
 */
async function countUsage(
  turns: readonly TextTurn[],
  { text, thoughts, named }: ReceivedAnswer,
  ports: Pick<Ports, 'tokens' | 'telemetry'>,
): Promise<Usage> {
  const question = new TextSample();
  question.add(questionOf(turns));
  const countedInput = (await count(question, ports)) + tokensOfTurns(turns);
  const countedThoughts = await count(thoughts, ports);
  const textTokens = await count(text, ports);
  const inputTokens = Math.min(countedInput, mostTokensOf(turns), named?.input ?? Infinity);
  const outputTokens = Math.min(countedThoughts + textTokens, named?.output ?? Infinity);
  return {
    inputTokens,
    cachedInputTokens: 0,
    cacheWriteTokens: 0,
    outputTokens,
    reasoningTokens: Math.min(countedThoughts, outputTokens),
    totalTokens: inputTokens + outputTokens,
  };
}

/** The usage without the tokens above a ceiling; parts are never larger than their whole. */
function within(ceiling: TokenCeiling, usage: Usage): Usage {
  const inputTokens = Math.min(usage.inputTokens, ceiling.inputTokens);
  const outputTokens = Math.min(usage.outputTokens, ceiling.outputTokens);
  const cachedInputTokens = Math.min(usage.cachedInputTokens, inputTokens);
  return {
    inputTokens,
    cachedInputTokens,
    cacheWriteTokens: Math.min(usage.cacheWriteTokens, inputTokens - cachedInputTokens),
    outputTokens,
    reasoningTokens: Math.min(usage.reasoningTokens, outputTokens),
    totalTokens: inputTokens + outputTokens,
  };
}

/** Estimates the tokens when counting fails: a delivered answer must not go uncharged. */
async function count(
  { beginning, chars }: TextSample,
  { tokens, telemetry }: Pick<Ports, 'tokens' | 'telemetry'>,
): Promise<number> {
  if (chars === 0) return 0;
  try {
    return Math.ceil(((await tokens.count(beginning)) * chars) / beginning.length);
  } catch (error) {
    telemetry.fault('token count failed: estimated instead', error);
    return Math.ceil(chars / charsPerToken);
  }
}

/** The charging rule for a client that disconnects, taken from the route of its answer. */
export function disconnectRuleOf(routes: readonly Route[], upstream: string | null): OnDisconnect {
  return routes.find((route) => route.upstream === upstream)?.onDisconnect ?? 'estimate';
}

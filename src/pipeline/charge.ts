import type { Outcome, SettledRecord } from '../domain/consumption.ts';
import { costOf, noTokens, priceFor } from '../domain/pricing.ts';
import { chargeBasis, isPassagePaid } from '../domain/settlement.ts';
import { TextSample } from '../protocol/text-sample.ts';
import type { TextTurn, Usage } from '../protocol/text.ts';
import type { OnDisconnect, Route } from '../domain/routing.ts';
import type { Ports } from './ports.ts';
import type { ReceivedAnswer } from './received-answer.ts';
import type { Recorded } from './stages.ts';

/** What a turn costs beside its text when we count, in tokens: its role and the marks around it. */
const usualTokensPerTurn = 4;

/** How long a token is on average, in characters, where it can't be counted. */
const charsPerToken = 4;

type Charge = Pick<SettledRecord, 'usage' | 'usageSource' | 'price' | 'chargeNanos'>;

/** How a request ended, as its charge depends on it. */
interface ChargedEnd {
  readonly outcome: Outcome;
  readonly usage: Usage | null;
  readonly passedStatus: number | null;
}

/**
 * What a request is charged, and by whose count. What the upstream plausibly counted is the true price in both modes,
 * whatever was held. So is what we counted; but where the hold is to be a bound of the cost, our own count does not go
 * beyond it. `passedStatus` is the status of a head that was passed on, or `null`.
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
  const { request, model, received, routes } = work;
  const rule = disconnectRuleOf(routes, attempts.upstream);
  const basis = chargeBasis(outcome, rule, received.progress(request.stream), usage !== null);
  if (basis === 'nothing') return unpaid;
  const used = usage ?? (await countUsage(request.turns, received, ports));
  const price = priceFor(model.price, used.inputTokens);
  const cost = costOf(used, price);
  const isBound = basis === 'counted' && ports.balanceMode === 'strict' && holdNanos !== null;
  return { usage: used, usageSource: basis, price, chargeNanos: isBound ? Math.min(cost, holdNanos) : cost };
}

/** The tokens of a question and of what came of its answer, thoughts included, by our own count. */
async function countUsage(
  turns: readonly TextTurn[],
  { text, thoughts }: ReceivedAnswer,
  ports: Pick<Ports, 'tokens' | 'telemetry'>,
): Promise<Usage> {
  const question = new TextSample();
  question.add(turns.map((turn) => turn.text).join('\n'));
  const inputTokens = (await count(question, ports)) + usualTokensPerTurn * turns.length;
  const reasoningTokens = await count(thoughts, ports);
  const outputTokens = reasoningTokens + (await count(text, ports));
  return {
    inputTokens,
    cachedInputTokens: 0,
    cacheWriteTokens: 0,
    outputTokens,
    reasoningTokens,
    totalTokens: inputTokens + outputTokens,
  };
}

/** A count that fails is replaced by a guess: an answer that was given must not go uncharged. */
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

/** What a client that leaves pays, by the route that its answer comes from. */
export function disconnectRuleOf(routes: readonly Route[], upstream: string | null): OnDisconnect {
  return routes.find((route) => route.upstream === upstream)?.onDisconnect ?? 'estimate';
}

import type { Outcome, SettledRecord } from '../domain/consumption.ts';
import { costOf, noTokens, priceFor } from '../domain/pricing.ts';
import { chargeBasis, isPassagePaid } from '../domain/settlement.ts';
import type { Progress } from '../domain/settlement.ts';
import { TextSample } from '../protocol/text-sample.ts';
import type { TextTurn, Usage } from '../protocol/text.ts';
import type { Exchange, Ports } from './exchange.ts';

/** What a turn costs beside its text when we count, in tokens: its role and the marks around it. */
const usualTokensPerTurn = 4;

/** How long a token is on average, in characters, where it can't be counted. */
const charsPerToken = 4;

type Charge = Pick<SettledRecord, 'usage' | 'usageSource' | 'price' | 'chargeNanos'>;

/**
 * What a request is charged, and by whose count. What the upstream plausibly counted is the true price in both modes,
 * whatever was held. So is what we counted; but where the hold is to be a bound of the cost, our own count does not go
 * beyond it.
 */
export async function chargeFor(
  outcome: Outcome,
  usage: Usage | null,
  { notes }: Exchange,
  ports: Ports,
): Promise<Charge> {
  const usageSource = usage === null ? 'none' : 'upstream';
  const unpaid: Charge = { usage, usageSource, price: null, chargeNanos: 0 };
  const { model, route, request, holdNanos, passedPrice, passedStatus } = notes;
  if (passedPrice !== null)
    return isPassagePaid(outcome, passedStatus)
      ? { ...unpaid, chargeNanos: costOf(noTokens, passedPrice) }
      : unpaid;
  if (model === null || route === null || request === null) return unpaid;
  const basis = chargeBasis(outcome, route.onDisconnect, progressOf(notes), usage !== null);
  if (basis === 'nothing') return unpaid;
  const used = usage ?? (await countUsage(request.turns, notes, ports));
  const price = priceFor(model.price, used.inputTokens);
  const cost = costOf(used, price);
  const isBound = basis === 'counted' && ports.balanceMode === 'strict' && holdNanos !== null;
  return { usage: used, usageSource: basis, price, chargeNanos: isBound ? Math.min(cost, holdNanos) : cost };
}

/** How far an answer had come when its request was over. */
function progressOf({ text, thoughts, stream, awaitsWhole }: Exchange['notes']): Progress {
  if (text.chars > 0) return stream ? 'sent' : 'unsent';
  if (thoughts !== null && thoughts.chars > 0) return 'unsent';
  return awaitsWhole ? 'awaited' : 'none';
}

/** The tokens of a question and of what came of its answer, thoughts included, by our own count. */
async function countUsage(
  turns: readonly TextTurn[],
  { text, thoughts }: Exchange['notes'],
  ports: Ports,
): Promise<Usage> {
  const question = new TextSample();
  question.add(turns.map((turn) => turn.text).join('\n'));
  const inputTokens = (await count(question, ports)) + usualTokensPerTurn * turns.length;
  const reasoningTokens = thoughts === null ? 0 : await count(thoughts, ports);
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
async function count({ beginning, chars }: TextSample, { tokens, telemetry }: Ports): Promise<number> {
  if (chars === 0) return 0;
  try {
    return Math.ceil(((await tokens.count(beginning)) * chars) / beginning.length);
  } catch (error) {
    telemetry.fault('tokens could not be counted', error);
    return Math.ceil(chars / charsPerToken);
  }
}

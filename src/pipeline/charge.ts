import type { Outcome, SettledRecord } from '../domain/consumption.ts';
import { costOf } from '../domain/pricing.ts';
import { chargeBasis } from '../domain/settlement.ts';
import type { TextTurn, Usage } from '../protocol/text.ts';
import type { Exchange, Ports } from './exchange.ts';

/** What a turn costs beside its text when we count, in tokens: its role and the marks around it. */
const tokensPerTurn = 4;

/** How long a token is on average, in characters, where it can't be counted. */
const charsPerToken = 4;

type Charge = Pick<SettledRecord, 'usage' | 'usageSource' | 'chargeNanos'>;

/**
 * What a request is charged, and by whose count. What we counted ourselves never costs more than was held for it; what
 * the upstream counted is the true price, whatever was held.
 */
export async function chargeFor(
  outcome: Outcome,
  usage: Usage | null,
  { notes }: Exchange,
  ports: Ports,
): Promise<Charge> {
  const unpaid: Charge = { usage, usageSource: usage === null ? 'none' : 'upstream', chargeNanos: 0 };
  const { model, route, request, text, stream, holdNanos } = notes;
  if (model === null || route === null || request === null) return unpaid;
  const hasText = stream && text !== '';
  const basis = chargeBasis(outcome, route.onDisconnect, hasText, usage !== null);
  if (basis === 'nothing') return unpaid;
  const used = usage ?? (await countUsage(request.turns, text, ports));
  const cost = costOf(used, model.price);
  if (basis === 'upstream') return { usage: used, usageSource: 'upstream', chargeNanos: cost };
  return { usage: used, usageSource: 'counted', chargeNanos: Math.min(cost, holdNanos ?? cost) };
}

/** The tokens of a question and of its answer as far as it went, by our own count. */
async function countUsage(turns: readonly TextTurn[], answer: string, ports: Ports): Promise<Usage> {
  const asked = await count(turns.map(({ text }) => text).join('\n'), ports);
  const inputTokens = asked + tokensPerTurn * turns.length;
  const outputTokens = await count(answer, ports);
  return {
    inputTokens,
    cachedInputTokens: 0,
    outputTokens,
    reasoningTokens: 0,
    totalTokens: inputTokens + outputTokens,
  };
}

/** A count that fails is replaced by a guess: an answer that was given must not go uncharged. */
async function count(text: string, { tokens, telemetry }: Ports): Promise<number> {
  try {
    return await tokens.count(text);
  } catch (error) {
    telemetry.fault('tokens could not be counted', error);
    return Math.ceil(text.length / charsPerToken);
  }
}

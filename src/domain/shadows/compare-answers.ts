import type { FinishReason } from '../../protocol/text.ts';
import type { Outcome } from '../money/consumption.ts';

/** What is kept of an answer to compare it with another one to the same request: counts and times, none of its text. */
export interface AnswerFacts {
  readonly outcome: Outcome;
  /** `null` for an answer that did not finish. */
  readonly finishReason: FinishReason | null;
  /** The length of its text, in UTF-16 code units. */
  readonly characters: number;
  /** From the call of the upstream to the first text, in milliseconds; `null` without any text. */
  readonly firstTextMs: number | null;
  /** From the call of the upstream to the end of the answer, in milliseconds. */
  readonly totalMs: number;
  /** In nano-USD. */
  readonly costNanos: number;
}

/**
 * How two answers to a request relate: with the same ending; both finished, for different reasons; or with different
 * outcomes.
 */
export type Verdict = 'same' | 'finish_reason' | 'outcome';

/** What is divided: the shadow's by that of the answer which the client got. */
export type RatioKind = 'length' | 'first_text' | 'total' | 'cost';

/** What the comparison of an answer with its shadow says. */
export interface Comparison {
  readonly verdict: Verdict;
  /** The shadow's figures by those of the answer; a kind without both of them, or with a zero below, is absent. */
  readonly ratios: Readonly<Partial<Record<RatioKind, number>>>;
}

/** Compares a shadow with the answer that the client got. Only two finished answers have ratios: others are cut short. */
export function compareAnswers(answer: AnswerFacts, shadow: AnswerFacts): Comparison {
  const verdict = verdictOf(answer, shadow);
  if (!areFinished(answer, shadow)) return { verdict, ratios: {} };
  const pairs: readonly (readonly [RatioKind, number | null, number | null])[] = [
    ['length', shadow.characters, answer.characters],
    ['first_text', shadow.firstTextMs, answer.firstTextMs],
    ['total', shadow.totalMs, answer.totalMs],
    ['cost', shadow.costNanos, answer.costNanos],
  ];
  const known = pairs.flatMap(([kind, above, below]) =>
    above === null || below === null || below <= 0 ? [] : [[kind, above / below] as const],
  );
  return { verdict, ratios: Object.fromEntries(known) };
}

/** Whether both answers came to their proper end. */
export function areFinished(answer: AnswerFacts, shadow: AnswerFacts): boolean {
  return answer.finishReason !== null && shadow.finishReason !== null;
}

function verdictOf(answer: AnswerFacts, shadow: AnswerFacts): Verdict {
  if (areFinished(answer, shadow))
    return answer.finishReason === shadow.finishReason ? 'same' : 'finish_reason';
  return answer.outcome === shadow.outcome ? 'same' : 'outcome';
}

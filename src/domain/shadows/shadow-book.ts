import type { Failure } from '../../protocol/text.ts';
import { periodAt } from '../budgets/calendar.ts';
import type { PeriodBounds } from '../budgets/calendar.ts';
import type { Outcome } from '../money/consumption.ts';
import { pricedAt } from '../money/price-changes.ts';
import type { ChangingPrice } from '../money/price-changes.ts';
import type { Clock } from '../ports/clock.ts';
import { areFinished, compareAnswers } from './compare-answers.ts';
import type { AnswerFacts, Comparison, Verdict } from './compare-answers.ts';

/** Where a share of a model's requests is also sent, and what that may take. */
export interface ShadowTerms extends ChangingPrice {
  /** The model's name for clients. */
  readonly model: string;
  /** The second upstream, and the model's name there. */
  readonly route: { readonly upstream: string; readonly model: string };
  /** The share of the requests, from 0 to 1. */
  readonly share: number;
  /** What may be spent in a day in UTC, in nano-USD; `null` for a free route. */
  readonly budgetNanos: number | null;
  /** How many of the requests may be in progress at a time. */
  readonly maxInFlight: number;
}

/** An amount that may be spent in each day in UTC; all amounts are in nano-USD. It is in memory: a start begins at zero. */
export class DayBudget {
  #day: PeriodBounds = { startMs: 0, endMs: 0 };
  #spent = 0;
  #held = 0;

  /** What was spent in the day that `nowMs` (milliseconds since 1970) is in, and when that day ends. */
  at(nowMs: number): { readonly spentNanos: number; readonly heldNanos: number; readonly endMs: number } {
    this.#turn(nowMs);
    return { spentNanos: this.#spent, heldNanos: this.#held, endMs: this.#day.endMs };
  }

  /**
   * Sets an expected cost aside; returns false if it does not fit into `limitNanos` beside what was spent today and what is
   * set aside. `limitNanos` is `null` for no limit.
   */
  hold(expectedNanos: number, limitNanos: number | null, nowMs: number): boolean {
    this.#turn(nowMs);
    if (limitNanos !== null && this.#spent + this.#held + expectedNanos > limitNanos) return false;
    this.#held += expectedNanos;
    return true;
  }

  /** Puts the cost into the place of what was set aside for it. It counts in the day in which it is known. */
  spend(heldNanos: number, costNanos: number, nowMs: number): void {
    this.#turn(nowMs);
    this.#held -= heldNanos;
    this.#spent += costNanos;
  }

  #turn(nowMs: number): void {
    // A clock that is set back must not give the budget of a day a second time.
    if (nowMs < this.#day.endMs) return;
    this.#day = periodAt(nowMs, 'day', 'UTC');
    this.#spent = 0;
  }
}

/**
 * Why a request of the share got no shadow: too many were in progress, the budget of the day has no room for it, the
 * upstream fails or asked for a pause, its limits left no permit free, or its protocol has no stop sequences.
 */
type SkipReason = 'in_flight' | 'budget' | 'upstream' | 'permit' | 'stop';

/** Gets every event of shadows as it happens; `model` is the name for clients. */
export interface ShadowReports {
  skipped(model: string, reason: SkipReason): void;
  ended(model: string, outcome: Outcome, costNanos: number): void;
  compared(model: string, comparison: Comparison): void;
}

/** The sums of one side of the compared pairs. */
interface PairSums {
  characters: number;
  /** Of the pairs in which both answers had text. */
  firstTextMs: number;
  totalMs: number;
  costNanos: number;
}

/** The latest failure of a shadow. */
interface ShadowFailure extends Pick<Failure, 'cause' | 'upstreamError'> {
  readonly outcome: Outcome;
  /** Milliseconds since 1970. */
  readonly atMs: number;
}

/** What was counted of the shadows of a model since they were configured, or since the start of the process. */
interface ShadowCounts {
  readonly sinceMs: number;
  /** Ended shadows, by outcome. */
  readonly outcomes: Partial<Record<Outcome, number>>;
  readonly skipped: Partial<Record<SkipReason, number>>;
  readonly verdicts: Partial<Record<Verdict, number>>;
  /** Pairs in which both answers finished, and those of them in which both had text. */
  pairs: number;
  timedPairs: number;
  readonly answers: PairSums;
  readonly shadows: PairSums;
  lastFailure: ShadowFailure | null;
}

/** What operators see of the shadows of a model. */
export interface ShadowView {
  /** With what the provider of the route asks now. */
  readonly terms: Omit<ShadowTerms, 'priceChanges'>;
  readonly running: number;
  readonly budget: ReturnType<DayBudget['at']>;
  readonly counts: ShadowCounts;
}

/** A shadow that runs, with the money set aside for it. */
export interface RunningCopy {
  /** Counts the end, once; `failure` has sanitised words, and is `null` where the provider did not fail. */
  ended(facts: AnswerFacts, failure: Pick<Failure, 'cause' | 'upstreamError'> | null): void;
  /** Counts a comparison with the answer that the client got. */
  compared(answer: AnswerFacts, shadow: AnswerFacts): void;
}

/** The shadows of one model. Those of an earlier route may still run: their money counts, and their answers do not. */
interface ModelShadows {
  terms: ShadowTerms;
  running: number;
  readonly budget: DayBudget;
  counts: ShadowCounts;
}

/** Counts the shadows of a process, and bounds what they take. It outlives the configs that say where they go. */
export class ShadowBook {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #reports: ShadowReports;
  readonly #models = new Map<string, ModelShadows>();

  constructor(clock: Pick<Clock, 'now'>, reports: ShadowReports) {
    this.#clock = clock;
    this.#reports = reports;
  }

  /** Sets the shadow routes in force. A model whose route is another one is counted anew; what it spent today stays. */
  configure(all: readonly ShadowTerms[]): void {
    const before = new Map(this.#models);
    this.#models.clear();
    for (const terms of all) {
      const known = before.get(terms.model);
      const shadows = known ?? { terms, running: 0, budget: new DayBudget(), counts: this.#newCounts() };
      if (!hasSameTarget(shadows.terms, terms)) shadows.counts = this.#newCounts();
      shadows.terms = terms;
      this.#models.set(terms.model, shadows);
    }
  }

  /** Notes that a request of the share got no shadow. */
  skipped(model: string, reason: SkipReason): void {
    const counts = this.#models.get(model)?.counts;
    if (counts !== undefined) count(counts.skipped, reason);
    this.#reports.skipped(model, reason);
  }

  /** Begins a shadow whose cost is expected to be `expectedNanos`; `null` if there is none, which is counted. */
  begin(terms: ShadowTerms, expectedNanos: number): RunningCopy | null {
    const { model, maxInFlight, budgetNanos } = terms;
    const shadows = this.#models.get(model);
    // A request of an earlier config, whose shadow would be counted as one of the route in force.
    if (shadows === undefined || !hasSameTarget(shadows.terms, terms)) return null;
    if (shadows.running >= maxInFlight) return this.#skip(model, 'in_flight');
    if (!shadows.budget.hold(expectedNanos, budgetNanos, this.#clock.now()))
      return this.#skip(model, 'budget');
    shadows.running++;
    const { counts } = shadows;
    return {
      ended: ({ outcome, costNanos }, failure) => {
        shadows.running--;
        shadows.budget.spend(expectedNanos, costNanos, this.#clock.now());
        count(counts.outcomes, outcome);
        if (failure !== null) {
          const { cause, upstreamError } = failure;
          counts.lastFailure = { outcome, cause, upstreamError, atMs: this.#clock.now() };
        }
        this.#reports.ended(model, outcome, costNanos);
      },
      compared: (answer, shadow) => {
        const comparison = compareAnswers(answer, shadow);
        count(counts.verdicts, comparison.verdict);
        if (areFinished(answer, shadow)) addPair(counts, answer, shadow);
        this.#reports.compared(model, comparison);
      },
    };
  }

  /** The shadows of the config in force, in its order. */
  views(): readonly ShadowView[] {
    const nowMs = this.#clock.now();
    return [...this.#models.values()].map(({ terms, running, budget, counts }) => ({
      terms: pricedAt(terms, nowMs),
      running,
      budget: budget.at(nowMs),
      counts,
    }));
  }

  #skip(model: string, reason: SkipReason): null {
    this.skipped(model, reason);
    return null;
  }

  #newCounts(): ShadowCounts {
    return {
      sinceMs: this.#clock.now(),
      outcomes: {},
      skipped: {},
      verdicts: {},
      pairs: 0,
      timedPairs: 0,
      answers: noSums(),
      shadows: noSums(),
      lastFailure: null,
    };
  }
}

function noSums(): PairSums {
  return { characters: 0, firstTextMs: 0, totalMs: 0, costNanos: 0 };
}

function hasSameTarget(before: ShadowTerms, after: ShadowTerms): boolean {
  return before.route.upstream === after.route.upstream && before.route.model === after.route.model;
}

function addPair(counts: ShadowCounts, answer: AnswerFacts, shadow: AnswerFacts): void {
  const isTimed = answer.firstTextMs !== null && shadow.firstTextMs !== null;
  counts.pairs++;
  if (isTimed) counts.timedPairs++;
  for (const [sums, facts] of [
    [counts.answers, answer],
    [counts.shadows, shadow],
  ] as const) {
    sums.characters += facts.characters;
    sums.totalMs += facts.totalMs;
    sums.costNanos += facts.costNanos;
    if (isTimed) sums.firstTextMs += facts.firstTextMs ?? 0;
  }
}

function count<Name extends string>(counts: Partial<Record<Name, number>>, name: Name): void {
  counts[name] = (counts[name] ?? 0) + 1;
}

import { describe, expect, test } from 'vitest';
import { free } from '../../src/domain/money/pricing.ts';
import { compareAnswers } from '../../src/domain/shadows/compare-answers.ts';
import type { AnswerFacts } from '../../src/domain/shadows/compare-answers.ts';
import { DayBudget, ShadowBook } from '../../src/domain/shadows/shadow-book.ts';
import type { ShadowTerms } from '../../src/domain/shadows/shadow-book.ts';

const midnight = Date.UTC(2030, 0, 2);
const answer: AnswerFacts = {
  outcome: 'completed',
  finishReason: 'stop',
  characters: 100,
  firstTextMs: 200,
  totalMs: 1_000,
  costNanos: 50,
};

describe('two answers to a request', () => {
  test('that both finished are divided, the shadow by the answer', () => {
    const shadow = { ...answer, characters: 50, firstTextMs: 400, totalMs: 500, costNanos: 100 };
    expect(compareAnswers(answer, shadow)).toEqual({
      verdict: 'same',
      ratios: { length: 0.5, first_text: 2, total: 0.5, cost: 2 },
    });
  });

  test('have no ratio to nothing: to no text, to no cost, to no time', () => {
    const nothing = { ...answer, characters: 0, firstTextMs: null, totalMs: 0, costNanos: 0 };
    expect(compareAnswers(nothing, answer)).toEqual({ verdict: 'same', ratios: {} });
  });

  test.for([
    ['incomplete', 'length', 'finish_reason'],
    ['upstream_truncated', null, 'outcome'],
  ] as const)('of which the shadow is %s for %s differ in the %s', ([outcome, finishReason, verdict]) => {
    expect(compareAnswers(answer, { ...answer, outcome, finishReason }).verdict).toBe(verdict);
  });

  test('that were cut short are not divided, and the same if they ended alike', () => {
    const cut = { ...answer, outcome: 'idle_timeout', finishReason: null } as const;
    expect(compareAnswers(cut, cut)).toEqual({ verdict: 'same', ratios: {} });
    expect(compareAnswers(answer, cut)).toEqual({ verdict: 'outcome', ratios: {} });
  });
});

describe('the budget of a day', () => {
  test('holds no more than is left beside what was spent and what is held', () => {
    const budget = new DayBudget();
    expect([budget.hold(6, 10, midnight), budget.hold(5, 10, midnight)]).toEqual([true, false]);
    budget.spend(6, 5, midnight);
    expect(budget.hold(5, 10, midnight)).toBe(true);
    expect(budget.at(midnight)).toEqual({ spentNanos: 5, heldNanos: 5, endMs: midnight + 86_400_000 });
    expect(budget.hold(1, 10, midnight)).toBe(false);
    expect(budget.hold(1_000, null, midnight)).toBe(true);
  });

  test('is full again at midnight in UTC, but for what is still held', () => {
    const budget = new DayBudget();
    budget.hold(4, 10, midnight - 1);
    budget.hold(6, 10, midnight - 1);
    budget.spend(6, 6, midnight - 1);
    expect(budget.hold(7, 10, midnight)).toBe(false);
    expect(budget.hold(6, 10, midnight)).toBe(true);
    budget.spend(4, 4, midnight);
    expect(budget.at(midnight)).toMatchObject({ spentNanos: 4, heldNanos: 6 });
  });

  test('is not full again when the clock is set back', () => {
    const budget = new DayBudget();
    budget.hold(10, 10, midnight);
    budget.spend(10, 10, midnight);
    expect(budget.hold(1, 10, midnight - 1)).toBe(false);
  });
});

describe('the shadows of a model', () => {
  const terms: ShadowTerms = {
    model: 'small',
    route: { upstream: 'other', model: 'm' },
    share: 1,
    price: free,
    budgetNanos: 100,
    maxInFlight: 2,
  };
  const elsewhere = { ...terms, route: { upstream: 'third', model: 'm' } };
  const open = () => {
    const events: string[] = [];
    const book = new ShadowBook(
      { now: () => midnight },
      {
        skipped: (model, reason) => void events.push(`${model} skipped: ${reason}`),
        ended: (model, outcome, costNanos) => void events.push(`${model} ${outcome}: ${costNanos}`),
        compared: (model, { verdict }) => void events.push(`${model} ${verdict}`),
      },
    );
    book.configure([terms]);
    return { book, events };
  };

  test('are bounded in number and in money', () => {
    const { book, events } = open();
    const first = book.begin(terms, 60);
    expect(book.begin(terms, 60)).toBeNull();
    const second = book.begin(terms, 40);
    expect(book.begin(terms, 0)).toBeNull();
    first?.ended({ ...answer, costNanos: 70 }, null);
    expect(book.begin(terms, 0)).toBeNull();
    second?.ended({ ...answer, costNanos: 30 }, null);
    expect(book.begin(terms, 1)).toBeNull();
    expect(book.views()).toMatchObject([
      { running: 0, budget: { spentNanos: 100, heldNanos: 0 }, counts: { outcomes: { completed: 2 } } },
    ]);
    expect(events).toEqual([
      'small skipped: budget',
      'small skipped: in_flight',
      'small completed: 70',
      'small skipped: budget',
      'small completed: 30',
      'small skipped: budget',
    ]);
  });

  test('are counted anew with another route, and go on with the budget of the day', () => {
    const { book } = open();
    const running = book.begin(terms, 10);
    book.begin(terms, 20)?.ended({ ...answer, costNanos: 20 }, null);
    book.configure([elsewhere]);
    expect(book.begin(terms, 0)).toBeNull();
    running?.ended({ ...answer, costNanos: 15 }, { cause: 'x', upstreamError: null });
    running?.compared(answer, answer);
    expect(book.views()).toMatchObject([
      {
        running: 0,
        budget: { spentNanos: 35 },
        counts: { outcomes: {}, verdicts: {}, pairs: 0, lastFailure: null },
      },
    ]);
    book.configure([{ ...elsewhere, share: 0.5 }]);
    book.begin(elsewhere, 0)?.ended(answer, null);
    book.configure([elsewhere]);
    expect(book.views()).toMatchObject([{ counts: { outcomes: { completed: 1 } } }]);
    book.configure([]);
    expect(book.views()).toEqual([]);
  });

  test('have sums of the pairs that both finished, and of first texts where both had one', () => {
    const { book } = open();
    const place = book.begin(terms, 0);
    place?.compared(answer, { ...answer, characters: 30 });
    place?.compared(answer, { ...answer, firstTextMs: null });
    place?.compared(answer, { ...answer, outcome: 'idle_timeout', finishReason: null });
    expect(book.views()).toMatchObject([
      {
        counts: {
          pairs: 2,
          timedPairs: 1,
          answers: { characters: 200, firstTextMs: 200, totalMs: 2_000, costNanos: 100 },
          shadows: { characters: 130, firstTextMs: 200 },
        },
      },
    ]);
  });
});

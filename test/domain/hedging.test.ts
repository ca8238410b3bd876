import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  HedgeBudgets,
  hedgeDelayMs,
  maxSavedHedges,
  minFirstTexts,
} from '../../src/domain/routing/hedging.ts';
import type { HedgePolicy } from '../../src/domain/routing/hedging.ts';
import { RouteMeasure } from '../../src/domain/routing/route-measure.ts';
import { propertyRun } from '../support/property-run.ts';

const p95: HedgePolicy = { after: { kind: 'quantile', share: 0.95 }, budget: 0.05 };

describe('the time before a second request', () => {
  test('is the fixed one, or else unknown without a measure', () => {
    expect(hedgeDelayMs({ after: { kind: 'time', ms: 2_000 }, budget: 0.05 }, null, 0)).toBe(2_000);
    expect(hedgeDelayMs(p95, null, 0)).toBeNull();
  });

  test('is the quantile of the recent first texts, once enough are known', () => {
    const measure = new RouteMeasure();
    const add = (timeMs: number): void => measure.began(0).opened(timeMs);
    for (let count = 1; count < minFirstTexts; count++) add(100);
    expect(hedgeDelayMs(p95, measure, 100)).toBeNull();
    for (let count = 0; count < 80; count++) add(100);
    const delayMs = hedgeDelayMs(p95, measure, 100) ?? 0;
    expect(delayMs).toBeGreaterThan(85);
    expect(delayMs).toBeLessThan(115);
    for (let count = 0; count < 20; count++) add(3_000);
    expect(hedgeDelayMs(p95, measure, 3_000)).toBeGreaterThan(2_000);
  });
});

describe('the budget of second requests', () => {
  test('is a share of the other requests, for each model its own', () => {
    const budgets = new HedgeBudgets();
    for (let count = 0; count < 19; count++) budgets.sent('small', p95);
    expect(budgets.spend('small')).toBe(false);
    budgets.sent('small', p95);
    expect(budgets.spend('large')).toBe(false);
    expect(budgets.spend('small')).toBe(true);
    expect(budgets.spend('small')).toBe(false);
    budgets.giveBack('small');
    expect(budgets.spend('small')).toBe(true);
  });

  test('is never exceeded, and no more than a few are saved up', () => {
    const policy = fc.record({
      after: fc.constant(p95.after),
      budget: fc.constantFrom(0.0001, 0.01, 0.05, 0.333, 1),
    });
    const steps = fc.array(fc.record({ sent: fc.nat(200), wanted: fc.nat(30) }), { maxLength: 30 });
    fc.assert(
      fc.property(policy, steps, (chosen, turns) => {
        const budgets = new HedgeBudgets();
        let sent = 0;
        let spent = 0;
        for (const turn of turns) {
          for (let count = 0; count < turn.sent; count++) budgets.sent('m', chosen);
          sent += turn.sent;
          let now = 0;
          for (let count = 0; count < turn.wanted; count++) if (budgets.spend('m')) now++;
          spent += now;
          expect(now).toBeLessThanOrEqual(maxSavedHedges);
          expect(spent).toBeLessThanOrEqual(sent * chosen.budget + 1e-6);
        }
      }),
      propertyRun(300),
    );
  });
});

import { describe, expect, test } from 'vitest';
import { RouteMeasure } from '../../../src/domain/routing/route-measure.ts';

/** Adds an attempt with a first text after a time; it has ended, too. */
function addText(measure: RouteMeasure, startedMs: number, timeMs: number): void {
  const attempt = measure.began(startedMs);
  attempt.opened(startedMs + timeMs);
  attempt.ended(startedMs + timeMs, false);
}

describe('the measure of a route', () => {
  test('knows no time at first, and then that of the first text', () => {
    const measure = new RouteMeasure();
    expect(measure.expectedMs(0)).toBeNull();
    addText(measure, 1_000, 300);
    expect(measure.expectedMs(1_300)).toBe(300);
    const { firstTextP95Ms, ...view } = measure.view(1_300);
    expect(view).toEqual({ inFlight: 0, waiting: 0, firstTexts: 1, firstTextMs: 300, isFailing: false });
    expect(Math.abs((firstTextP95Ms ?? 0) - 300)).toBeLessThan(30);
  });

  test('counts attempts in progress and those without text; each ends once', () => {
    const measure = new RouteMeasure();
    const [one, other] = [measure.began(0), measure.began(0)];
    one.opened(10);
    one.opened(90);
    expect(measure.view(10)).toMatchObject({ inFlight: 2, waiting: 1, firstTextMs: 10 });
    one.ended(20, false);
    one.ended(20, true);
    other.ended(20, false);
    other.ended(20, false);
    expect(measure.view(20)).toMatchObject({ inFlight: 0, waiting: 0, isFailing: false });
  });

  test('follows a change within some tens of texts, however many there were before', () => {
    const measure = new RouteMeasure();
    for (let text = 0; text < 10_000; text++) addText(measure, text, 100);
    for (let text = 0; text < 100; text++) addText(measure, 10_000 + text, 900);
    expect(measure.expectedMs(10_200)).toBeGreaterThan(750);
  });

  test('counts the latest text most after a pause', () => {
    const measure = new RouteMeasure();
    for (let text = 0; text < 100; text++) addText(measure, text, 100);
    addText(measure, 100_000, 900);
    expect(measure.expectedMs(100_900)).toBeGreaterThan(800);
  });

  test('expects of a route that hangs at least what its attempts have waited', () => {
    const measure = new RouteMeasure();
    addText(measure, 0, 100);
    measure.began(1_000);
    const second = measure.began(2_000);
    expect(measure.expectedMs(2_050)).toBe(550);
    expect(measure.expectedMs(6_000)).toBe(4_500);
    second.ended(6_000, false);
    expect(measure.expectedMs(6_000)).toBe(5_000);
  });

  test('takes a wait that was given up for a time, but not a short one', () => {
    const measure = new RouteMeasure();
    measure.began(0).ended(5, true);
    expect(measure.expectedMs(5)).toBeNull();
    measure.began(5).ended(1_005, false);
    expect(measure.expectedMs(1_005)).toBe(1_000);
    measure.began(1_005).ended(1_010, true);
    expect(measure.expectedMs(1_010)).toBe(1_000);
    measure.began(1_010).ended(31_010, true);
    expect(measure.expectedMs(31_010)).toBeGreaterThan(20_000);
  });

  test('is failing for ten seconds after a failure, or until the next text', () => {
    const measure = new RouteMeasure();
    measure.began(0).ended(100, true);
    expect([measure.isFailing(10_099), measure.isFailing(10_100)]).toEqual([true, false]);
    addText(measure, 200, 50);
    expect(measure.isFailing(260)).toBe(false);
    const broken = measure.began(300);
    broken.opened(310);
    broken.ended(320, true);
    expect(measure.isFailing(321)).toBe(true);
  });

  test('is untried until the first time is known, unless a trial is under way or was just now', () => {
    const measure = new RouteMeasure();
    expect(measure.isUntried(0)).toBe(true);
    const trial = measure.began(0);
    expect(measure.isUntried(20_000)).toBe(false);
    trial.ended(20, true);
    expect([measure.isUntried(9_999), measure.isUntried(10_000)]).toEqual([false, true]);
    addText(measure, 10_000, 50);
    expect(measure.isUntried(60_000)).toBe(false);
    expect([measure.isStale(40_049), measure.isStale(40_050)]).toEqual([false, true]);
  });
});

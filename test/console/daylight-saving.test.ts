import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type * as ChosenTime from '../../src/console/chosen-time.ts';
import type * as TimeRange from '../../src/console/views/usage/time-range.ts';
import type * as Format from '../../src/console/widgets/format.ts';

const zone = process.env['TZ'];
const hourMs = 3_600_000;

/** The two times at which it is half past two in Berlin on the day when the clocks are set back. */
const passes = ['2026-10-25T00:30:00.000Z', '2026-10-25T01:30:00.000Z'] as const;

describe('on the day of 25 hours, in Berlin,', () => {
  let format: typeof Format;
  let chosen: typeof ChosenTime;
  let ranges: typeof TimeRange;
  beforeAll(async () => {
    process.env['TZ'] = 'Europe/Berlin';
    // The zone of the viewer is read once for the whole page.
    vi.resetModules();
    format = await import('../../src/console/widgets/format.ts');
    chosen = await import('../../src/console/chosen-time.ts');
    ranges = await import('../../src/console/views/usage/time-range.ts');
  });
  afterAll(() => {
    if (zone === undefined) delete process.env['TZ'];
    else process.env['TZ'] = zone;
    vi.resetModules();
  });

  test('times are those of the zone that is named, and those of the hour that comes twice are told apart', () => {
    expect(format.viewersZone).toBe('Europe/Berlin');
    expect(passes.map(format.formatTime)).toEqual([
      'Oct 25, 2026, 02:30:00 GMT+2',
      'Oct 25, 2026, 02:30:00 GMT+1',
    ]);
    expect(format.formatTime('2026-10-24T22:00:00Z')).toBe('Oct 25, 2026, 00:00:00');
    expect(format.formatTime('2026-10-25T22:59:59Z')).toBe('Oct 25, 2026, 23:59:59');
  });

  test('the day has each of its hours once, in words of its own', () => {
    const day = { first: '2026-10-25', last: '2026-10-25' };
    const { from, to, starts } = ranges.timeRange(day, Date.parse(passes[0]));
    expect([from, to, starts.length]).toEqual(['2026-10-24T22:00:00.000Z', '2026-10-25T23:00:00.000Z', 25]);
    const words = starts.map((startMs) => format.formatTime(new Date(startMs).toISOString()));
    expect(new Set(words).size).toBe(25);
  });

  test('today begins at midnight, and the last 24 hours an hour later than the same time of the day before', () => {
    const nowMs = Date.parse('2026-10-25T12:00:00Z');
    const begins = (name: 'today' | '24h'): string => chosen.boundsOf({ name, given: null }, nowMs).from;
    expect(begins('today')).toBe('2026-10-24T22:00:00.000Z');
    expect(format.formatTime(begins('24h'))).toBe('Oct 24, 2026, 14:00:00');
    expect(format.formatTime(new Date(nowMs).toISOString())).toBe('Oct 25, 2026, 13:00:00');
  });

  test('a field of a time keeps the pass in which its time is, and reads all others', () => {
    for (const pass of passes) {
      expect(format.localText(pass)).toBe('2026-10-25T02:30:00');
      // Browsers leave out seconds that are zero.
      const later = format.readLocal('2026-10-25T02:45', pass);
      expect(later).toBe(new Date(Date.parse(pass) + hourMs / 4).toISOString());
      expect(format.readLocal('2026-10-25T12:00:00', pass)).toBe('2026-10-25T11:00:00.000Z');
      expect(format.readLocal('2026-10-24T12:00:00', pass)).toBe('2026-10-24T10:00:00.000Z');
    }
    expect([format.readLocal('', passes[0]), format.readLocal('0002-10-25T02:45', passes[0])]).toEqual([
      null,
      null,
    ]);
  });
});

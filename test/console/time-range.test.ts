import { afterEach, describe, expect, test } from 'vitest';
import {
  dayAt,
  daysOf,
  isDay,
  placeOf,
  rangeBefore,
  timeRange,
} from '../../src/console/views/usage/time-range.ts';
import { formatChange } from '../../src/console/widgets/format.ts';

const hourMs = 3_600_000;
const zone = process.env['TZ'];

afterEach(() => {
  if (zone === undefined) delete process.env['TZ'];
  else process.env['TZ'] = zone;
});

/** The range of some days, looked at in a zone at a time. */
function rangeIn(tz: string, first: string, last: string, now = '2030-06-15T12:00:00Z') {
  process.env['TZ'] = tz;
  return timeRange({ first, last }, Date.parse(now));
}

describe('the times of a range', () => {
  test('begin on the whole hour before midnight where the zone is off the hour, which is said', () => {
    const range = rangeIn('Asia/Kathmandu', '2030-06-14', '2030-06-15');
    // Midnight is at 18:15 in UTC there.
    expect([range.from, range.to]).toEqual(['2030-06-13T18:00:00.000Z', '2030-06-15T18:00:00.000Z']);
    expect([range.unit, range.starts.length]).toEqual(['hour', 48]);
    expect(range.note).toContain('Your zone is off them');
    expect(rangeIn('Europe/Rome', '2030-06-14', '2030-06-15').note).toBeNull();
  });

  test.each([
    ['Asia/Kathmandu', '2030-06-03'],
    ['Europe/Rome', '2030-03-28'],
    ['America/St_Johns', '2030-10-30'],
    ['Pacific/Auckland', '2030-04-03'],
    ['Australia/Lord_Howe', '2030-04-03'],
  ])('have each hour once, in its day, also where clocks change: %s', (tz, first) => {
    process.env['TZ'] = tz;
    const last = dayAt({ first, last: first }, 6);
    const range = timeRange({ first, last }, Date.parse('2030-12-31T00:00:00Z'));
    expect([range.unit, range.period, range.starts.length]).toEqual(['day', 'hour', 7]);
    for (let moment = Date.parse(range.from); moment < range.endMs; moment += hourMs) {
      const place = placeOf(range.starts, moment);
      // The end of the hour that was summed up is in the day, though its beginning may be just before.
      const end = new Date(moment + hourMs - 1);
      const day = [end.getFullYear(), end.getMonth() + 1, end.getDate()].map((part) =>
        String(part).padStart(2, '0'),
      );
      expect(day.join('-')).toBe(dayAt(range, place));
    }
  });

  test('of more than two weeks are days of UTC, with this evening of the viewer', () => {
    const range = rangeIn('America/Los_Angeles', '2030-05-17', '2030-06-15', '2030-06-16T03:00:00Z');
    expect([range.from, range.to, range.period]).toEqual([
      '2030-05-17T00:00:00.000Z',
      '2030-06-17T00:00:00.000Z',
      'day',
    ]);
    expect(range.starts).toHaveLength(31);
    expect(dayAt(range, 30)).toBe('2030-06-16');
  });

  test('are those of the days that were chosen, which are days of the calendar', () => {
    process.env['TZ'] = 'Asia/Kathmandu';
    // 18:20 in UTC is tomorrow there.
    const now = Date.parse('2030-06-14T18:20:00Z');
    expect(daysOf('today', null, now)).toEqual({ first: '2030-06-15', last: '2030-06-15' });
    expect(daysOf('days', null, now)).toEqual({ first: '2030-06-15', last: '2030-06-15' });
    const given = { first: '2028-02-28', last: '2028-03-01' };
    expect(daysOf('days', given, now)).toBe(given);
    expect(timeRange(given, now).starts).toHaveLength(3);
    expect(['1970-01-01', '2028-02-29', '9999-12-30'].filter(isDay)).toHaveLength(3);
    const none = [
      '2030-1-1',
      '0001-01-01',
      '2030-13-01',
      '2030-02-29',
      '2030-04-31',
      '9999-12-31',
      'x',
      null,
    ];
    expect(none.filter(isDay)).toEqual([]);
  });
});

describe('the time before, to which usage is compared,', () => {
  const beforeIn = (tz: string, first: string, last: string, now: string) => {
    const before = rangeBefore(rangeIn(tz, first, last, now), Date.parse(now));
    return before && [before.from, before.to];
  };

  test('is as many days, and of a day that is not over as many of its hours', () => {
    expect(beforeIn('Europe/Rome', '2030-06-15', '2030-06-15', '2030-06-15T10:20:00Z')).toEqual([
      '2030-06-13T22:00:00.000Z',
      '2030-06-14T11:00:00.000Z',
    ]);
    expect(beforeIn('Europe/Rome', '2030-06-08', '2030-06-14', '2030-06-15T10:20:00Z')).toEqual([
      '2030-05-31T22:00:00.000Z',
      '2030-06-07T22:00:00.000Z',
    ]);
    expect(beforeIn('Europe/Rome', '2030-05-17', '2030-06-15', '2030-06-15T10:20:00Z')).toEqual([
      '2030-04-17T00:00:00.000Z',
      '2030-05-16T11:00:00.000Z',
    ]);
  });

  test('ends with its last day where the clocks change in either', () => {
    // The day of 25 hours is compared with one of 24.
    expect(beforeIn('Europe/Rome', '2030-10-27', '2030-10-27', '2030-10-28T12:00:00Z')).toEqual([
      '2030-10-25T22:00:00.000Z',
      '2030-10-26T22:00:00.000Z',
    ]);
  });

  test('is not there for days to come, and before 1970', () => {
    expect(beforeIn('UTC', '2030-07-01', '2030-07-01', '2030-06-15T10:20:00Z')).toBeNull();
    expect(beforeIn('UTC', '1970-01-01', '1970-01-02', '2030-06-15T10:20:00Z')).toBeNull();
  });
});

describe('a change', () => {
  test.each([
    [150, 100, '+50%'],
    [98.7, 100, '−1.3%'],
    [0, 100, '−100%'],
    [5_000, 100, '×50'],
    [1, 0, 'new'],
    [0, 0, 'none'],
    [100, 100, '+0%'],
  ])('of %s after %s is %s', (now, before, text) => expect(formatChange(now, before)).toBe(text));
});

import { describe, expect, test } from 'vitest';
import { calendarOf, nextDay, parseDay, parseMoment } from '../../../src/cli/reconcile/calendar.ts';

const hourMs = 3_600_000;

describe('the days of a time zone', () => {
  test.each([
    ['UTC', '2030-03-31', '2030-03-31T00:00:00Z', 24],
    ['Europe/Berlin', '2030-03-31', '2030-03-30T23:00:00Z', 23],
    ['Europe/Berlin', '2030-10-27', '2030-10-26T22:00:00Z', 25],
    ['America/Los_Angeles', '2030-01-01', '2030-01-01T08:00:00Z', 24],
    ['Asia/Kathmandu', '2030-01-01', '2029-12-31T18:15:00Z', 24],
    ['Pacific/Kiritimati', '2030-01-01', '2029-12-31T10:00:00Z', 24],
  ])('%s: %s begins at %s and has %i hours', (zone, day, begin, hours) => {
    const calendar = calendarOf(zone);
    const startMs = Date.parse(begin);
    expect(calendar.startOf(day)).toBe(startMs);
    expect(calendar.startOf(nextDay(day))).toBe(startMs + hours * hourMs);
    expect(calendar.dayOf(startMs)).toBe(day);
    expect(calendar.dayOf(startMs - 1)).not.toBe(day);
    expect(calendar.dayOf(startMs + hours * hourMs - 1)).toBe(day);
  });

  test('an unknown zone is refused', () => {
    expect(() => calendarOf('Mars/Olympus')).toThrow('--time-zone: Mars/Olympus is no time zone');
  });
});

test('the day after the last of a month is the first of the next one', () => {
  expect([nextDay('2028-02-28'), nextDay('2028-02-29'), nextDay('2029-12-31')]).toEqual([
    '2028-02-29',
    '2028-03-01',
    '2030-01-01',
  ]);
});

test.each([
  ['2030-01-31', { kind: 'day', day: '2030-01-31' }],
  [1_893_456_000, { kind: 'instant', ms: 1_893_456_000_000 }],
  ['1893456000', { kind: 'instant', ms: 1_893_456_000_000 }],
  ['2030-01-01T00:00:00Z', { kind: 'instant', ms: 1_893_456_000_000 }],
  ['2030-01-01T01:00:00+01:00', { kind: 'instant', ms: 1_893_456_000_000 }],
  ['2030-01-01T01:00:00+0100', { kind: 'instant', ms: 1_893_456_000_000 }],
  ['2030-01-01 00:00:00', { kind: 'instant', ms: 1_893_456_000_000 }],
  ['2030-01-01 00:00:00.250', { kind: 'instant', ms: 1_893_456_000_250 }],
  ['2030-01-01 00:00:00 UTC', { kind: 'instant', ms: 1_893_456_000_000 }],
  ['2030-02-30', null],
  ['2030-02-30 00:00:00', null],
  ['01/31/2030', null],
  ['', null],
  [null, null],
])('the time %j is read as %j', (value, moment) => {
  expect(parseMoment(value)).toEqual(moment);
});

test('a day that is in no calendar is none', () => {
  expect([parseDay('2030-02-29'), parseDay('2028-02-29'), parseDay('2030-1-1')]).toEqual([
    null,
    '2028-02-29',
    null,
  ]);
});

import { expect, test } from 'vitest';
import { readRetryAfter } from '../../../src/protocol/upstream/retry-after.ts';

const at = (second: number): string => new Date(Date.UTC(2001, 0, 1, 0, 0, second)).toUTCString();

test.each<[what: string, headers: Record<string, string>, pauseMs: number | null]>([
  ['seconds', { 'retry-after': '30' }, 30_000],
  ['milliseconds before seconds', { 'retry-after': '30', 'retry-after-ms': '250' }, 250],
  ['a date of a clock that is years behind', { 'retry-after': at(30), date: at(0) }, 30_000],
  ['a date that has passed by the same clock', { 'retry-after': at(0), date: at(30) }, 0],
  ['a date that is too far away', { 'retry-after': at(86_400), date: at(0) }, 600_000],
  ['a date without the time at which it was written', { 'retry-after': at(30) }, null],
  ['a date beside a broken one', { 'retry-after': at(30), date: 'now' }, null],
  ['words', { 'retry-after': 'soon', date: at(0) }, null],
  ['nothing', { 'retry-after': '', date: at(0) }, null],
  ['seconds beside blank milliseconds', { 'retry-after': '30', 'retry-after-ms': ' ' }, 30_000],
  ['seconds beside negative milliseconds', { 'retry-after': '20', 'retry-after-ms': '-1' }, 20_000],
  ['seconds beside milliseconds in hex', { 'retry-after': '20', 'retry-after-ms': '0x10' }, 20_000],
  ['seconds beside milliseconds with an exponent', { 'retry-after': '20', 'retry-after-ms': '1e3' }, 20_000],
  [
    'a date beside milliseconds that are words',
    { 'retry-after': at(30), date: at(0), 'retry-after-ms': 'x' },
    30_000,
  ],
  ['milliseconds with a fraction', { 'retry-after': '30', 'retry-after-ms': '250.5' }, 250.5],
  ['more milliseconds than a number can have', { 'retry-after-ms': '9'.repeat(400) }, 600_000],
  ['seconds in hex', { 'retry-after': '0x10' }, null],
  ['a negative number', { 'retry-after': '-5' }, null],
  ['a negative number beside a date', { 'retry-after': '-5', date: at(0) }, null],
  ['no header', { date: at(0) }, null],
])('the pause that an answer asks for is read from %s', (_what, headers, pauseMs) => {
  expect(readRetryAfter((name) => headers[name])).toBe(pauseMs);
});

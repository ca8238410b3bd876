import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readLimitHeaders } from '../../../src/protocol/upstream/limit-headers.ts';
import { hasRecordings, recordings } from '../../support/shared-recordings.ts';

const read = (headers: Readonly<Record<string, string>>) => readLimitHeaders((name) => headers[name]);

describe('the limits that an answer reports', () => {
  test('are read from the headers of OpenAI and Groq, whose resets are durations', () => {
    expect(
      read({
        'x-ratelimit-limit-requests': '5000',
        'x-ratelimit-remaining-requests': '4999',
        'x-ratelimit-reset-requests': '12ms',
        'x-ratelimit-limit-tokens': '2000000',
        'x-ratelimit-remaining-tokens': '1999417',
        'x-ratelimit-reset-tokens': '6m0s',
      }),
    ).toEqual([
      {
        name: 'requests',
        counts: 'requests',
        limit: 5_000,
        remaining: 4_999,
        resetMs: 12,
        resolutionMs: 1,
        refill: 'steady',
      },
      {
        name: 'tokens',
        counts: 'tokens',
        limit: 2_000_000,
        remaining: 1_999_417,
        resetMs: 360_000,
        resolutionMs: 1_000,
        refill: 'steady',
      },
    ]);
  });

  test.each([
    ['59.7s', 59_700, 1],
    ['172.799999ms', 172.799999, 1],
    ['1h2m3s', 3_723_000, 1_000],
    ['0s', 0, 1],
    // Azure: 1 of 120 requests a minute is back in 500 ms.
    ['500', 500, 1],
  ])('have a reset of %s', (reset, resetMs, resolutionMs) => {
    const [limit] =
      read({
        'x-ratelimit-limit-requests': '120',
        'x-ratelimit-remaining-requests': '119',
        'x-ratelimit-reset-requests': reset,
      }) ?? [];
    expect(limit).toMatchObject({ refill: 'steady', resetMs: expect.closeTo(resetMs, 6), resolutionMs });
  });

  test('are read from the headers of Anthropic, whose moments count from the answer’s own date', () => {
    expect(
      read({
        date: 'Wed, 18 Mar 2026 17:50:11 GMT',
        'anthropic-ratelimit-requests-limit': '50',
        'anthropic-ratelimit-requests-remaining': '47',
        'anthropic-ratelimit-requests-reset': '2026-03-18T17:50:15Z',
        'anthropic-ratelimit-output-tokens-limit': '8000',
        'anthropic-ratelimit-output-tokens-remaining': '8000',
        'anthropic-ratelimit-output-tokens-reset': '2026-03-18T17:50:10Z',
      }),
    ).toEqual([
      {
        name: 'requests',
        counts: 'requests',
        limit: 50,
        remaining: 47,
        resetMs: 4_000,
        resolutionMs: 1_000,
        refill: 'steady',
      },
      {
        name: 'output-tokens',
        counts: 'output',
        limit: 8_000,
        remaining: 8_000,
        resetMs: 0,
        resolutionMs: 1_000,
        refill: 'steady',
      },
    ]);
  });

  test.each([
    ['23', 23_000],
    ['1754667660', 26_000],
    ['1754667660000', 26_000],
    ['1000000000', 0],
    ['1000000000000', 0],
  ])('of a plain window with a reset of %s end then', (reset, resetMs) => {
    const headers = {
      date: 'Fri, 08 Aug 2025 15:40:34 GMT',
      'x-ratelimit-limit': '2',
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': reset,
    };
    expect(read(headers)).toEqual([
      {
        name: 'requests',
        counts: 'requests',
        limit: 2,
        remaining: 0,
        resetMs,
        resolutionMs: 1_000,
        refill: 'window',
      },
    ]);
  });

  test('of a minute have no reset', () => {
    expect(
      read({ 'x-ratelimit-limit-req-minute': '5', 'x-ratelimit-remaining-req-minute': '4' }),
    ).toMatchObject([{ name: 'requests-minute', limit: 5, remaining: 4, resetMs: null, refill: 'window' }]);
  });

  test('are at least what is left', () => {
    expect(
      read({ 'x-ratelimit-limit': '100', 'x-ratelimit-remaining': '198', 'x-ratelimit-reset': '0' }),
    ).toMatchObject([{ limit: 198, remaining: 198 }]);
  });

  test.each([
    [{}],
    [{ 'x-ratelimit-limit-requests': '60' }],
    [{ 'x-ratelimit-limit-requests': '60', 'x-ratelimit-remaining-requests': '-1' }],
    [{ 'x-ratelimit-limit-requests': '0', 'x-ratelimit-remaining-requests': '0' }],
    [{ 'x-ratelimit-limit-requests': 'many', 'x-ratelimit-remaining-requests': '1' }],
    [{ 'x-ratelimit-limit-requests': '9'.repeat(400), 'x-ratelimit-remaining-requests': '1' }],
    [{ 'x-ratelimit-limit': 'false', 'x-ratelimit-remaining': 'false' }],
  ])('are none in %j', (headers) => {
    expect(read(headers)).toBeNull();
  });

  test('have no reset where it cannot be read, or counts from no date', () => {
    const tokens = { 'x-ratelimit-limit-tokens': '60', 'x-ratelimit-remaining-tokens': '1' };
    for (const reset of ['soon', '', '1x', '2026-03-18T17:50:11Z', '2026-99-99T17:50:11Z'])
      expect(read({ ...tokens, 'x-ratelimit-reset-tokens': reset })).toMatchObject([
        { resetMs: null, refill: 'window' },
      ]);
  });

  test('never last longer than a month', () => {
    const headers = {
      'x-ratelimit-limit': '2',
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': '999999999',
    };
    expect(read(headers)).toMatchObject([{ resetMs: 31 * 24 * 3_600_000 }]);
  });

  test('are no limits above a million millions: some providers say so that there is none', () => {
    const limitOf = (limit: string) =>
      read({ 'x-ratelimit-limit-tokens': limit, 'x-ratelimit-remaining-tokens': '5' })?.map(
        (found) => found.limit,
      ) ?? null;
    expect(limitOf('1000000000000')).toEqual([1e12]);
    expect(limitOf('1000000000001')).toBeNull();
  });

  test('need only headers that are named', () => {
    const needed = new Set<string>();
    readLimitHeaders((name) => {
      needed.add(name);
      return '2';
    });
    expect([...needed].filter((name) => name !== name.toLowerCase())).toEqual([]);
    expect([...needed]).toContain('date');
    expect([...needed]).toContain('anthropic-ratelimit-input-tokens-reset');
  });
});

test.skipIf(!hasRecordings)('limits of recorded answers have plausible numbers', () => {
  const recorded = JSON.parse(readFileSync(join(recordings, 'response_headers.json'), 'utf8')) as readonly {
    readonly headers: Readonly<Record<string, string>>;
  }[];
  const reports = recorded.flatMap(({ headers }) => read(headers) ?? []);
  expect(reports.length).toBeGreaterThan(30);
  for (const { limit, remaining, resetMs } of reports) {
    expect(remaining).toBeLessThanOrEqual(limit);
    expect(resetMs ?? 0).toBeLessThanOrEqual(60_000);
  }
});

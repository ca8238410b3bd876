import { describe, expect, test } from 'vitest';
import type { ErrorCode } from '../../src/shared/errors.ts';
import { terminalLine } from '../../src/telemetry/log/terminal-line.ts';
import measure from 'fast-string-truncated-width';

const request = {
  level: 30,
  time: new Date(2030, 0, 31, 9, 5, 7).getTime(),
  msg: 'request',
  protocol: 'chat',
  mode: 'stream',
  model: 'small',
  upstream: 'local',
  status: 200,
  outcome: 'completed',
  code: null,
  cause: null,
  inputTokens: 11,
  outputTokens: 7,
  firstTextMs: 120.4,
  totalMs: 1_291.4,
  keyId: 'key_1',
  keyName: 'first key',
  requestId: 'req_00000000000000000000000012ab34cd',
  attempts: [{ upstream: 'local', result: 'ok', cause: null }],
};

/** A terminal that shows styles as `<green>…`. */
const painting = { columns: 100, paint: (style: string, text: string) => `<${style}>${text}` };
const plain = { columns: 100, paint: (_style: string, text: string) => text };

const show = (line: object, terminal = plain): string =>
  terminalLine({ ...request, ...line }, terminal).trimEnd();

describe('the line of a request', () => {
  test('has the time, status, protocol, route, time to first text, total, tokens, key and short id', () => {
    expect(show({})).toBe(
      '09:05:07 200 chat small → local         120ms  1.29s 11+7 tokens                first key   12ab34cd',
    );
  });

  test('is followed by the cause of every attempt that failed, also if another one answered', () => {
    const failed = {
      upstream: 'own',
      result: 'unreachable',
      cause: 'POST http://own/v1: connection refused',
    };
    const [line, ...more] = show({ attempts: [failed, ...request.attempts] }).split('\n');
    expect(line).toContain('200 chat small → local');
    expect(more).toEqual(['         own: POST http://own/v1: connection refused']);
  });

  test("has the provider's own code and message with the cause", () => {
    const upstreamError = { status: 400, code: 'too_large', message: 'max_tokens is too large: 99999' };
    const refused = { upstream: 'local', result: 'refused', cause: 'status 400', upstreamError };
    const shown = show({
      status: 400,
      outcome: 'upstream_failed',
      code: 'invalid_value',
      attempts: [refused],
    });
    expect(shown.split('\n')[1]?.trim()).toBe(
      'local: status 400 (too_large: max_tokens is too large: 99999)',
    );
  });

  test('has the code that the client got instead of tokens, and the model that it asked for', () => {
    const refused = { status: 404, outcome: 'refused', code: 'model_not_found', inputTokens: null };
    const unknown = { model: null, requestedModel: 'tinny', upstream: null, firstTextMs: null, attempts: [] };
    expect(show({ ...refused, ...unknown })).toBe(
      '09:05:07 404 chat tinny                     -  1.29s model_not_found            first key   12ab34cd',
    );
  });

  test('has the short id of the request whose answer it got', () => {
    const joined = { outcome: 'joined', replayOf: 'req_000000000000000000000000cd34ab12', inputTokens: null };
    const uncalled = {
      model: null,
      requestedModel: 'small',
      upstream: null,
      firstTextMs: null,
      attempts: [],
    };
    expect(show({ ...joined, ...uncalled })).toBe(
      '09:05:07 200 chat small                     -  1.29s joined cd34ab12            first key   12ab34cd',
    );
  });

  test('has the upstreams that had no permit free, where none was called', () => {
    const refused = { status: 429, outcome: 'refused', code: 'upstream_busy', inputTokens: null };
    const busy = { upstream: null, refusedBy: ['own', 'spare'], firstTextMs: null, attempts: [] };
    expect(show({ ...refused, ...busy })).toBe(
      '09:05:07 429 chat small → own, spare        -  1.29s upstream_busy              first key   12ab34cd',
    );
  });

  test.each(['concurrency_limit_exceeded', 'missing_required_parameter'] satisfies ErrorCode[])(
    'shows the error code %s and the key name environment whole at 100 columns',
    (code) => {
      const line = show({ outcome: 'refused', status: 429, code, keyName: 'environment' });
      expect(line).toContain(` ${code} environment 12ab34cd`);
    },
  );

  test.each([
    ['completed', 200, 'green'],
    ['incomplete', 200, 'cyan'],
    ['refused', 429, 'yellow'],
    ['refused', 503, 'red'],
    ['client_closed', 200, 'yellow'],
    ['upstream_truncated', 200, 'red'],
    ['upstream_failed', 502, 'red'],
  ])('is coloured by its outcome: %s with status %i is %s', (outcome, status, colour) => {
    expect(show({ outcome, status }, painting)).toContain(`<${colour}>${status} `);
  });

  test.each([80, 90, 100, 200, 0])('fits into a terminal of %i columns, between 80 and 100', (columns) => {
    const long = { model: 'm'.repeat(200), upstream: 'u'.repeat(200), keyName: '键'.repeat(40) };
    const cause = `${'word '.repeat(60)}${'x'.repeat(300)}`;
    const attempts = [{ upstream: 'own', result: 'error', cause }];
    const shown = show({ ...long, attempts, code: 'c'.repeat(99) }, { ...plain, columns });
    const most = Math.min(100, Math.max(80, columns));
    const widths = shown.split('\n').map((line) => measure(line).width);
    expect(Math.max(...widths)).toBeLessThanOrEqual(most);
    expect(widths[0]).toBe(most);
    expect(shown.replaceAll(/[^x]/g, '')).toBe('x'.repeat(300));
  });

  test('has sub-second times in milliseconds, and others in seconds', () => {
    const timesOf = (firstTextMs: number, totalMs: number) => show({ firstTextMs, totalMs }).slice(39, 52);
    expect(timesOf(0.4, 999.4).trim()).toBe('0ms  999ms');
    expect(timesOf(1_000, 599_000).trim()).toBe('1.00s   599s');
  });
});

test('any other line has its level, message and fields, with further lines indented', () => {
  expect(show({ level: 40, msg: 'upstream circuit opened', upstream: 'local' })).toBe(
    '09:05:07 WARN  upstream circuit opened: local',
  );
  const opened = {
    level: 40,
    msg: 'upstream circuit opened',
    upstream: 'local',
    cause: 'GET http://x: refused',
  };
  expect(show({ ...opened, trialAfterMs: 5_000 })).toBe(
    '09:05:07 WARN  upstream circuit opened: local: tried again after 5 s: GET http://x: refused',
  );
  expect(show({ level: 20, msg: 'upstream attempt', result: 'rate_limited', cause: 'status 429' })).toBe(
    '09:05:07 DEBUG upstream attempt: local: rate_limited: status 429',
  );
  expect(show({ level: 30, msg: 'ledger root', upstream: null, root: 7, hash: '0a1b' })).toBe(
    '09:05:07 INFO  ledger root: 7: 0a1b',
  );
  expect(show({ level: 50, msg: 'reload failed', upstream: null, reason: 'bad:\n  - one\n200 forged' })).toBe(
    '09:05:07 ERROR reload failed: bad:\n                 - one\n               200 forged',
  );
});

test('a long item of a list stays behind its bullet', () => {
  const [, ...items] = show({
    level: 50,
    msg: 'reload failed',
    reason: `bad:\n  - ${'word '.repeat(40)}\n  - two`,
  }).split('\n');
  expect(items.length).toBeGreaterThan(3);
  expect(items.map((line) => line.search(/\S/))).toEqual([17, ...items.slice(2).map(() => 19), 17]);
  expect(Math.max(...items.map((line) => line.length))).toBeLessThanOrEqual(100);
});

test('control sequences and line breaks in names and causes are escaped', () => {
  const model = 'a\u001b[2Jb\n200';
  const cause = 'x\u001b]0;title\u0007\u202e\ny';
  const shown = show({ model, attempts: [{ upstream: 'own\r', result: 'error', cause }] });
  expect(shown.replaceAll('\n         own', '')).not.toMatch(/[\p{Cc}\p{Cf}]/u);
  expect(shown).toContain(String.raw`a\u{1b}[2Jb\n200`);
});

test.each([
  ['a hundred jamo, which are one character', 'ᄀ'.repeat(200)],
  ['an emoji with a hundred modifiers', `👍${'🏽'.repeat(200)}`],
  ['a letter with a thousand marks', `a${'\u0301'.repeat(1_000)}`],
])('words of an upstream that are wider than a line are written whole: %s', (_name, cause) => {
  const shown = show({ attempts: [{ upstream: 'own', result: 'error', cause }] });
  expect(shown.split('\n').slice(1).join('').replaceAll(/\s/g, '')).toBe(`own:${cause}`);
});

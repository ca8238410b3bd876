import { describe, expect, test } from 'vitest';
import { classifyReported, classifyStatus } from '../../../src/protocol/upstream/classify-error.ts';
import { readErrorWords, showWords, readSaidWords } from '../../../src/protocol/upstream/error-words.ts';
import { sanitiserOf } from '../../support/sanitiser.ts';

const quoting = (prompt: string) => sanitiserOf([{ role: 'user', text: prompt }]);

describe('the words that decide what kind of error it is', () => {
  const hostile = 'violat'.repeat(170_000);

  test.each<[string, unknown]>([
    ['a message of 1 MiB', { message: hostile }],
    ['details of 1 MiB', { message: 'x', details: [{ detail: hostile }] }],
    ['a code of 1 MiB', { message: 'x', code: hostile }],
    [
      'thousands of codes',
      { message: 'x', details: Array.from({ length: 5_000 }, (_, at) => ({ reason: `a${at}` })) },
    ],
    ['a message of blanks', { message: ' '.repeat(1_048_576) }],
  ])('are few, however much an upstream sends: %s', (_name, error) => {
    const sanitise = quoting('x');
    const words = readErrorWords(error);
    const said = readSaidWords(words, showWords(words, null, sanitise), sanitise);
    expect(said.codes.length).toBeLessThanOrEqual(16);
    expect(Math.max(0, ...said.codes.map(({ length }) => length))).toBeLessThanOrEqual(64);
    expect(said.opening.length).toBeLessThanOrEqual(256);
    expect(said.shown.length).toBeLessThanOrEqual(1_300);
    expect(classifyReported(error, sanitise).kind).toBe('reported_error');
    const body = JSON.stringify({ error });
    for (const status of [400, 403, 404]) {
      const { kind } = classifyStatus(status, body, null, sanitise);
      expect(['rejected', 'auth', 'unserved']).toContain(kind);
    }
  });
});

describe('a request that an upstream quotes', () => {
  test.each([
    [
      'what is content_filter',
      'internal error at "what is content_filter"',
      'server_error',
      'reported_error',
    ],
    ['what is content_filter', 'slow down: "what is content_filter"', 'rate_limit_exceeded', 'rate_limited'],
    ['content_filter', 'could not parse content_filter', 'server_error', 'reported_error'],
    ['all about content_filter here', 'could not parse content_filter', 'server_error', 'reported_error'],
    [
      'your text violates our usage policies',
      'internal error near your text violates our usage policies',
      'server_error',
      'reported_error',
    ],
    [
      'tell me about the context window of a model',
      'internal error near: tell me about the context window',
      'server_error',
      'reported_error',
    ],
  ])('does not decide the kind of an error inside an answer: %s', (prompt, message, code, kind) => {
    expect(classifyReported({ code, message }, quoting(prompt)).kind).toBe(kind);
  });

  test.each([
    [400, { message: 'bad', input: 'tell me the context limit' }, 'tell me the context limit', 'rejected'],
    [400, { message: 'could not parse near: billing' }, 'where is billing', 'rejected'],
    [422, { message: 'no invalid api key here' }, 'there is no invalid api key here today', 'rejected'],
    [
      403,
      { message: 'no permission', input: 'violates our usage policy' },
      'violates our usage policy',
      'auth',
    ],
    [403, { message: 'no: "what is flagged_input"' }, 'what is flagged_input', 'auth'],
  ])('does not decide the kind of a %i: %j', (status, error, prompt, kind) => {
    expect(classifyStatus(status, JSON.stringify({ error }), null, quoting(prompt)).kind).toBe(kind);
  });

  test.each([
    'Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing.',
    'API key not valid. Please pass a valid API key.',
    'User location is not supported for the API use.',
  ])('does not hide the provider’s own sentence: %s', (message) => {
    const body = JSON.stringify({ error: { type: 'invalid_request_error', message } });
    expect(classifyStatus(400, body, null, quoting('x'))).toMatchObject({ kind: 'auth' });
    expect(classifyStatus(400, body, null, quoting('x'))).not.toHaveProperty('fromMessage');
    const hidden = classifyStatus(400, body, null, quoting(`Explain: ${message}`));
    expect(hidden).toMatchObject({ kind: 'auth', fromMessage: true });
  });

  test('does not hide that the provider refuses its text', () => {
    const message = 'Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO';
    const sanitise = quoting(`Explain: ${message}`);
    expect(classifyStatus(403, message, null, sanitise).kind).toBe('content_filtered');
    expect(classifyReported({ message }, sanitise).kind).toBe('content_filtered');
  });
});

test.each([
  ['its beginning', `This violates our usage policy. ${'and so on '.repeat(1_000)}`],
  ['its end', `${'and so on '.repeat(1_000)} This violates our usage policy.`],
])('a long message refuses a text by %s', (_name, message) => {
  expect(classifyReported({ message }, quoting('x')).kind).toBe('content_filtered');
  expect(classifyStatus(403, message, null, quoting('x')).kind).toBe('content_filtered');
  const quoted = quoting('what is: This violates our usage policy.');
  expect(classifyReported({ message }, quoted).kind).toBe('reported_error');
});

test('a 403 whose words can’t be compared with a long request is not taken for the operator’s key', () => {
  const sanitise = quoting('x'.repeat(2_097_153));
  const kindOf = (body: string) => classifyStatus(403, body, null, sanitise);
  expect(kindOf('{"error":{"message":"The text is not fit for us."}}')).toMatchObject({
    kind: 'rejected',
    fromMessage: true,
  });
  expect(kindOf('{"error":{"message":"no","type":"permission_error"}}').kind).toBe('auth');
  expect(kindOf('{"error":{"message":"no","code":"content_filter"}}').kind).toBe('content_filtered');
  expect(kindOf('').kind).toBe('auth');
});

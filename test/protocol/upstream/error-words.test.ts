import { describe, expect, test } from 'vitest';
import { classifyReported, classifyStatus } from '../../../src/protocol/upstream/classify-error.ts';
import { errorBodies } from '../../support/provider-errors.ts';
import { plainSanitiser } from '../../support/sanitiser.ts';

const said = 'max_tokens is too large: 99999. This model supports at most 4096';

const wordsOf = (status: number, body: string) =>
  classifyStatus(status, body, null, plainSanitiser).upstreamError;

/** Forms without a name for the error, and those that put something before the message. */
const nameless = new Set(['FastAPI, a text', 'Ollama', 'problem details', 'a text', 'a web page']);
const placed = new Map([['FastAPI, a list', 'body.messages.0: ']]);

const detailsOf = (reasons: readonly string[]): string =>
  JSON.stringify({ error: { details: reasons.map((reason) => ({ reason })) } });

describe('the words of an error status', () => {
  test.each(Object.entries(errorBodies))('are read from the form of %s', (form, write) => {
    expect(wordsOf(400, write(said, 'BadRequestError'))).toEqual({
      status: 400,
      code: nameless.has(form) ? null : 'BadRequestError',
      message: (placed.get(form) ?? '') + said,
    });
  });

  test.each([
    ['nothing', '', null, null],
    ['blanks', ' \n ', null, null],
    ['an empty object', '{}', null, null],
    ['a number', '{"error":{"code":42}}', null, null],
    ['JSON that is cut off', '{"error":{"message":"the begin', null, null],
    ['a page without a title', '<html><body>secret</body></html>', null, null],
    ['a page with an endless title', '<html><title>secret', null, null],
    ['a text in JSON', '"no"', null, 'no'],
    ['a code beside an empty message', '{"error":{"message":"","code":"bad_thing"}}', 'bad_thing', null],
    [
      'a reason among details',
      '{"error":{"details":[{"reason":"KEY_BAD"}],"status":"INVALID"}}',
      'KEY_BAD',
      null,
    ],
    ['a code that is no name', '{"error":{"code":"two words","type":"a_name"}}', 'a_name', null],
    ['a code that is a key', '{"error":{"code":"sk-abcdef123456","type":"a_name"}}', 'a_name', null],
    ['errors in errors', `${'{"error":'.repeat(9)}{"message":"deep"}${'}'.repeat(9)}`, null, null],
    ['an error in three others', '{"error":{"error":{"error":{"message":"deep"}}}}', null, 'deep'],
    ['an error in four others', '{"error":{"error":{"error":{"error":{"message":"deep"}}}}}', null, null],
    ['the reasons of three of many details', detailsOf(['a key', 'b key', 'c key', 'FOURTH']), null, null],
    ['three of many faults', '{"errors":["a","b","c","d"]}', null, 'a; b; c'],
    ['raw text of a relayed error', '{"error":{"message":"x","metadata":{"raw":"plain"}}}', null, 'plain'],
    ['white space and control characters', '"a\\u0000\\n\\t b\u200b\\u001b[2J c"', null, 'a b[2J c'],
    ['control characters that are not escaped', 'a\u0000\n b', null, null],
    [
      'a message with bytes that are no text',
      '{"error":{"code":"a_name","message":"donn\uFFFDes"}}',
      'a_name',
      null,
    ],
    ['half a character', '{"message":"a\\ud83d b"}', null, 'a b'],
  ])('are right for %s', (_name, body, code, message) => {
    expect(wordsOf(500, body)).toEqual({ status: 500, code, message });
  });

  test('are at most 400 characters, and never half of one', () => {
    const message = wordsOf(400, '🙂 '.repeat(1_000))?.message ?? '';
    expect(Array.from(message)).toHaveLength(400);
    expect(message.isWellFormed()).toBe(true);
    expect(wordsOf(400, 'a '.repeat(200))?.message).toHaveLength(399);
  });
});

test('of all the names of an error only a few are sanitised, and each of them once', () => {
  const sanitised: string[] = [];
  const sanitise = (text: string): null => {
    sanitised.push(text);
    return null;
  };
  const fields = ['code', 'type', 'status', 'error_type', 'errorType', '__type'];
  const errors = Array.from({ length: 2_000 }, (_, at) =>
    Object.fromEntries(fields.map((field) => [field, `${field.replaceAll('_', '')}-${at >> 1}`])),
  );
  classifyStatus(500, JSON.stringify({ errors }), null, sanitise);
  expect(sanitised.length).toBeGreaterThan(6);
  expect(new Set(sanitised).size).toBe(sanitised.length);
  // Eight names, and the details.
  expect(sanitised.length).toBeLessThanOrEqual(9);
  sanitised.length = 0;
  const reasons = errors.map((_, at) => `type-${at}`);
  classifyStatus(500, detailsOf(reasons), null, sanitise);
  expect(sanitised.slice(0, 3)).toEqual(['type-0', 'type-1', 'type-2']);
  expect(sanitised.length).toBeLessThanOrEqual(4);
});

describe('the words of a body whose end is missing', () => {
  const echo = JSON.stringify(JSON.stringify({ message: 'an echo' })).slice(0, -1);
  test.each([
    [
      'before what it repeats',
      `{"detail":[{"type":"x","msg":"Input \\"a\\" is \\u0062ad","input":"a long`,
      'Input "a" is bad',
    ],
    ['behind what it repeats', `{"input":${echo}","message" : "no\\nway","x":"y`, 'no way'],
    ['only in what it repeats', `{"input":${echo}`, null],
    ['cut off soon', '{"error":{"message":"my key is sk-a', null],
    ['cut off late', `{"message":"no ${'a '.repeat(40_000)}`, `no ${'a '.repeat(200)}`.slice(0, 399) + '…'],
    ['empty', '{"message":"","x":"y', null],
  ])('are its message, %s', (_where, body, message) => {
    expect(wordsOf(422, body)).toEqual({ status: 422, code: null, message });
  });

  test('are found in one pass over a body that begins many messages', () => {
    // A pattern that went on to the end of the body from each beginning would not end within the test's limit.
    const body = '{"a":{"message":"'.padEnd(65_536, String.raw`\"message\": \"`);
    expect(wordsOf(422, body)?.message ?? '').toContain('message');
    expect(wordsOf(422, '{"message"'.repeat(6_000))?.message).toBeNull();
  });
});

describe('the words of an error inside an answer', () => {
  test.each<[string, unknown, ReturnType<typeof wordsOf>]>([
    [
      'an object',
      { message: said, code: 'invalid_value' },
      { status: null, code: 'invalid_value', message: said },
    ],
    ['a number as its code', { message: said, code: 429 }, { status: 429, code: null, message: said }],
    ['a number as text', { message: said, code: '503' }, { status: 503, code: null, message: said }],
    ['the lowest status', { message: said, code: 400 }, { status: 400, code: null, message: said }],
    ['a number below it', { message: said, code: 399 }, { status: null, code: null, message: said }],
    ['the highest status', { message: said, code: 599 }, { status: 599, code: null, message: said }],
    ['a number above it', { message: said, code: 600 }, { status: null, code: null, message: said }],
    ['a broken number', { message: said, code: 400.5 }, { status: null, code: null, message: said }],
    [
      'an envelope',
      { type: 'error', error: { type: 'a', message: 'b' } },
      { status: null, code: 'a', message: 'b' },
    ],
    ['a text', said, { status: null, code: null, message: said }],
    ['nothing', null, null],
    ['an empty object', {}, null],
  ])('are read from %s', (_name, error, words) => {
    expect(classifyReported(error, plainSanitiser).upstreamError).toEqual(words);
  });
});

describe('an unknown model', () => {
  test.each([
    '{"error":{"message":"The model `gpt-9` does not exist or you do not have access to it.","code":"model_not_found"}}',
    '{"object":"error","message":"The model `x` does not exist.","type":"NotFoundError","code":404}',
    '{"error":"model \\"x\\" not found, try pulling it first"}',
    '{"type":"error","error":{"type":"not_found_error","message":"model: claude-9"}}',
    '{"error":{"code":404,"message":"models/x is not found for API version v1beta","status":"NOT_FOUND"}}',
    '{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}',
    '{"error":{"message":"No endpoints found for x.","code":404}}',
  ])('is told from a wrong path: %s', (body) => {
    expect(classifyStatus(404, body, null, plainSanitiser).kind).toBe('model_unknown');
  });

  test.each(['', '{"detail":"Not Found"}', '<html><title>404 Not Found</title>', 'File Not Found'])(
    'is not meant by %j',
    (body) => expect(classifyStatus(404, body, null, plainSanitiser).kind).toBe('unserved'),
  );
});

import { describe, expect, test } from 'vitest';
import { openStage } from '../support/stage.ts';
import { sayTexts } from '../support/scripted-upstream.ts';

const chat = '/v1/chat/completions';
const responses = '/v1/responses';
const user = { role: 'user', content: 'x' };

const { upstream, gateway } = await openStage({ otherModel: 'other' });
upstream.play(sayTexts(['y']));

interface ErrorBody {
  readonly message: string;
  readonly code: string;
  readonly param: string | null;
}

async function errorOf(path: string, body: unknown, init: Parameters<typeof gateway.post>[2] = {}) {
  const response = await gateway.post(path, body, init);
  const { error } = (await response.json()) as { error: ErrorBody };
  return { status: response.status, ...error };
}

describe('a body that is not JSON', () => {
  test.each([
    [
      '{"model": "small",\n "messages": [{"role": "user", "content": "my secret"},]}',
      'Line 2, column 55: a comma before',
    ],
    ["{'model': 'small', 'messages': [{'role': 'user', 'content': 'my secret'}]}", 'only double quotes'],
    ['{model: small, messages: [my secret]}', 'a name without double quotes, which a shell may have removed'],
    ['{"model": "small", "stream": True, "messages": ["my secret"]}', 'the word True, which is true in JSON'],
    ['{"model": "small", "messages": [{"content": "my secret\n"}]}', 'a line break in a string'],
    ['{"model": "small", "messages": [{"content": "my secret', 'never closed'],
  ])('is refused with the place and the kind of its fault, and not quoted: %s', async (body, words) => {
    const { status, code, message } = await errorOf(chat, body);
    expect({ status, code }).toEqual({ status: 400, code: 'invalid_json' });
    expect(message).toMatch(/^The request body is not valid JSON\. Line \d+, column \d+: /);
    expect(message).toContain(words);
    expect(message).not.toMatch(/secret/);
  });

  test.each<[string, Buffer | string, string | RegExp]>([
    ['is empty', ' \n', 'is empty'],
    ['is UTF-16', Buffer.from('\uFEFF{"model":"small"}', 'utf16le'), 'seems to be UTF-16'],
    ['is UTF-16 without a mark', Buffer.from('{"model":"small"}', 'utf16le'), 'seems to be UTF-16'],
    [
      'is UTF-16, big end first',
      Buffer.from('\uFEFF{"model":"small"}', 'utf16le').swap16(),
      'seems to be UTF-16',
    ],
    [
      'is UTF-16, big end first, without a mark',
      Buffer.from('{"model":"small"}', 'utf16le').swap16(),
      'seems to be UTF-16',
    ],
    ['is Latin-1', Buffer.from('{"model":"caf\u00E9"}', 'latin1'), 'is not UTF-8 text'],
    ['was encoded twice', JSON.stringify(JSON.stringify({ model: 'small' })), 'encoded as JSON twice'],
    ['is a list', '[]', 'must be a JSON object, but got an array instead'],
    ['is a text', '"small"', /got a string instead\.$/],
  ])('or no object is refused for what it is: it %s', async (_name, body, words) => {
    const { status, message } = await errorOf(chat, '', { body });
    expect(status).toBe(400);
    expect(message).toMatch(words);
  });
});

describe('a misspelt name', () => {
  test.each([
    [chat, { model: 'small', messages: [user], maxtokens: 5 }, "Did you mean 'max_tokens'?"],
    [
      chat,
      { model: 'small', messages: [user], maxCompletionTokens: 5 },
      "Did you mean 'max_completion_tokens'?",
    ],
    [chat, { model: 'small', mesages: [user] }, "Did you mean 'messages'?"],
    [responses, { model: 'small', imput: 'x' }, "Did you mean 'input'?"],
    [chat, { model: 'small', messages: [user], frobnicate: 5 }, 'Remove it from the request.'],
    [chat, { model: 'small', messages: [user], x: 5 }, 'Remove it from the request.'],
  ])('of a field at %s is answered with the nearest one: %j', async (path, body, words) => {
    const { code, message } = await errorOf(path, body);
    expect(code).toBe('unknown_parameter');
    expect(message).toMatch(/^Unknown parameter: '\w+'\. /);
    expect(message).toContain(words);
  });

  test.each([
    ['smal', " Did you mean 'small'?"],
    ['Small', " Did you mean 'small'?"],
    ['gpt-9', ''],
    ['x', ''],
  ])('of a model is answered with the nearest one: %s', async (model, words) => {
    for (const answer of [
      await errorOf(chat, { model, messages: [user] }),
      await errorOf(responses, { model, input: 'x' }),
    ])
      expect(answer).toMatchObject({
        status: 404,
        code: 'model_not_found',
        param: 'model',
        message: `The model '${model}' does not exist.${words} GET /v1/models lists the available models.`,
      });
  });

  test('of a model is never answered with one that the key may not use', async () => {
    const { secret } = await gateway.gateway.createKey('restricted', { models: ['other'] });
    const headers = { authorization: `Bearer ${secret}` };
    const { message } = await errorOf(chat, { model: 'smal', messages: [user] }, { headers });
    expect(message).not.toContain('small');
  });
});

describe('a value that is wrong', () => {
  const chatWith = (message: object) => ({ model: 'small', messages: [message] });
  test.each([
    [
      chat,
      chatWith({ role: 'user', content: 5 }),
      'messages[0].content',
      "Invalid type for 'messages[0].content': expected a string or an array of text parts, but got an integer instead.",
    ],
    [
      chat,
      { model: 'small', messages: user },
      'messages',
      "Invalid type for 'messages': expected an array of messages, but got an object instead.",
    ],
    [
      responses,
      { model: 'small', input: '' },
      'input',
      "Invalid 'input': expected text, or an array with at least one message, but got an empty string instead.",
    ],
    [
      responses,
      { model: 'small', input: [] },
      'input',
      "Invalid 'input': expected text, or an array with at least one message, but got an empty array instead.",
    ],
    [
      responses,
      { model: 'small', input: [{ type: 'reasoning', summary: [] }] },
      'input',
      "Invalid 'input': expected text, or an array with at least one message, but got an array without a message instead.",
    ],
    [
      responses,
      { model: 'small', input: { role: 'user', content: 'x' } },
      'input',
      "Invalid type for 'input': expected a string or an array of messages, but got an object instead.",
    ],
    [
      responses,
      { model: 'small', input: [{ type: 'input_text', text: 'x' }] },
      'input[0].type',
      "Unsupported value: 'input[0].type'. A part with text belongs in the content of a message.",
    ],
    [
      chat,
      chatWith({ role: 'user', content: [{ type: 'input_text', text: 'x' }] }),
      'messages[0].content[0].type',
      "Unsupported value: 'messages[0].content[0].type'. Only text is available, in parts of the type 'text'.",
    ],
    [
      chat,
      { ...chatWith(user), max_output_tokens: 5 },
      'max_output_tokens',
      "Unknown parameter: 'max_output_tokens'. The name at this endpoint is max_completion_tokens.",
    ],
    [
      responses,
      { model: 'small', input: 'x', truncation: 'x' },
      'truncation',
      "Invalid value for 'truncation': 'x'. Supported values are: 'disabled' and 'auto'.",
    ],
  ])('at %s is answered with what is expected: %j', async (path, body, param, message) => {
    expect(await errorOf(path, body)).toMatchObject({ status: 400, param, message });
  });
});

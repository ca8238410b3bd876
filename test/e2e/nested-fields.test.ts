import { describe, expect, test } from 'vitest';
import { sayTexts } from '../support/scripted-upstream.ts';
import { openStage } from '../support/stage.ts';

const chat = '/v1/chat/completions';
const responses = '/v1/responses';
const user = { role: 'user', content: 'x' };

const log: { readonly stripped?: readonly string[] }[] = [];
const logDestination = { write: (line: string) => void log.push(JSON.parse(line) as (typeof log)[number]) };
const { upstream, gateway } = await openStage({ logDestination });
upstream.play(sayTexts(['y']));
const { secret } = await gateway.gateway.createKey('lenient', { compatibility: { unknownFields: 'ignore' } });
const lenient = { headers: { authorization: `Bearer ${secret}` } };

const chatWith = (more: object) => ({ model: 'small', messages: [user], ...more });
const responseWith = (more: object) => ({ model: 'small', input: 'x', ...more });
const streamed = (options: object) => ({ stream: true, stream_options: options });
const strippedOf = (response: Response) => (response.headers.get('x-textgate-stripped') ?? '').split(',');

describe('an unknown field of an options object', () => {
  const cases: readonly (readonly [string, object, string, string])[] = [
    [chat, chatWith(streamed({ include_usag: true })), 'stream_options.include_usag', 'include_usage'],
    [chat, chatWith({ response_format: { type: 'text', strickt: 1 } }), 'response_format.strickt', 'strict'],
    [
      responses,
      responseWith(streamed({ include_usages: true })),
      'stream_options.include_usages',
      'include_usage',
    ],
    [responses, responseWith({ text: { verbosty: 'low' } }), 'text.verbosty', 'verbosity'],
    [
      responses,
      responseWith({ text: { format: { type: 'text', namme: 'x' } } }),
      'text.format.namme',
      'name',
    ],
  ];

  test.each(cases)('at %s is refused like a top-level one: %j', async (path, body, param, meant) => {
    const response = await gateway.post(path, body);
    expect(response.status).toBe(400);
    const owner = param.slice(0, param.lastIndexOf('.') + 1);
    expect(await response.json()).toMatchObject({
      error: {
        code: 'unknown_parameter',
        param,
        message: `Unknown parameter: '${param}'. Did you mean '${owner}${meant}'?`,
      },
    });
  });

  test.each(cases)(
    'at %s is dropped and named for a key that ignores them: %j',
    async (path, body, param) => {
      const response = await gateway.post(path, body, lenient);
      expect(response.status).toBe(200);
      expect(strippedOf(response)).toContain(param);
      await response.text();
    },
  );
});

describe('a text format', () => {
  test.each([
    [chat, chatWith({ response_format: { type: 'text', strict: true } }), 'response_format.strict'],
    [chat, chatWith({ response_format: { name: null, type: 'text' } }), 'response_format.type'],
    [responses, responseWith({ text: { format: { type: 'text', strict: true } } }), 'text.format.strict'],
  ])('at %s may have settings of other formats: %j', async (path, body, named) => {
    const response = await gateway.post(path, body);
    expect(response.status).toBe(200);
    expect(strippedOf(response)).toContain(named);
  });

  test('that is another one is refused by its type, wherever that stands', async () => {
    const format = { json_schema: { name: 'x', schema: {} }, type: 'json_schema' };
    const response = await gateway.post(chat, chatWith({ response_format: format }));
    expect(await response.json()).toMatchObject({
      error: { code: 'unsupported_value', param: 'response_format.type' },
    });
  });
});

describe('an unknown field in the history', () => {
  test('of a chat is dropped and named, once for all messages, and never passed on', async () => {
    const part = { type: 'text', text: 'x', my_part: 1, cache_control: {} };
    const thought = { type: 'thinking', thinking: 'hm', signature: 's' };
    const messages = [
      { ...user, chat_id: '7', timestamp: 1 },
      { role: 'assistant', content: [part, thought], chat_id: '7', 'ev\r\nil: 1': 1 },
      { ...user, 'schön ☃': 1 },
    ];
    const response = await gateway.post(chat, { model: 'small', messages });
    expect(response.status).toBe(200);
    expect(strippedOf(response)).toEqual([
      'messages[].chat_id',
      'messages[].timestamp',
      'messages[].content[].my_part',
      'messages[].content[].cache_control',
      'messages[].content[].thinking',
      'messages[].other',
    ]);
    const sent = JSON.parse(upstream.seen.at(-1)?.body ?? '') as { messages: readonly object[] };
    expect(sent.messages.map((message) => Object.keys(message))).toEqual(
      messages.map(() => ['role', 'content']),
    );
  });

  test('of Responses input is dropped and named', async () => {
    const part = { type: 'output_text', text: 'x', annotations: [], parsed: null, extra: 1 };
    const input = [
      { ...user, custom: 1 },
      { type: 'reasoning', id: 'rs_1', summary: [] },
      { role: 'assistant', content: [part] },
      user,
    ];
    const response = await gateway.post(responses, { model: 'small', input });
    expect(response.status).toBe(200);
    expect(strippedOf(response)).toEqual([
      'input[].custom',
      'input[].reasoning',
      'input[].content[].annotations',
      'input[].content[].extra',
    ]);
  });

  test('adds a bounded number of names to the header and the log, and none to the metrics', async () => {
    const messages = Array.from({ length: 4_000 }, (_, index) => ({
      ...user,
      [`field_${index}`]: index,
      name: 'n',
    }));
    const response = await gateway.post(chat, { model: 'small', messages });
    expect(response.status).toBe(200);
    const named = strippedOf(response);
    expect(named).toHaveLength(34);
    expect(named).toEqual(expect.arrayContaining(['messages[].field_31', 'messages[].name', 'other']));
    await response.text();
    expect(log.findLast(({ stripped }) => stripped !== undefined)?.stripped).toEqual(named);
    const metrics = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
    expect(metrics).not.toMatch(/field_|chat_id|custom|my_part/);
    expect(metrics).toMatch(/textgate_stripped_parameters_total\{parameter="other"\} \d+/);
    expect(metrics).not.toContain('textgate_stripped_parameters_total{parameter="messages"}');
    expect(metrics).toMatch(/textgate_stripped_parameters_total\{parameter="messages\[\]\.name"\} 1/);
  });
});

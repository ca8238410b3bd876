import { connect } from 'node:net';
import { describe, expect, test } from 'vitest';
import { openStage } from '../support/stage.ts';
import { sayTexts } from '../support/scripted-upstream.ts';

const chat = '/v1/chat/completions';
const responses = '/v1/responses';
const user = { role: 'user', content: 'x' };
const chatBody = { model: 'small', messages: [user] };
const responsesBody = { model: 'small', input: 'x' };
const image = { type: 'image_url', image_url: { url: 'data:,' } };

const { upstream, gateway } = await openStage();
upstream.play(sayTexts(['x']));

/** Asserts the whole error envelope, the request id, and that the upstream got no request. */
async function expectRefusal(response: Response, status: number, code: string, param: string | null) {
  const { error } = (await response.json()) as { error: Record<string, unknown> };
  expect({ status: response.status, code: error['code'], param: error['param'] }).toEqual({
    status,
    code,
    param,
  });
  expect(Object.keys(error).slice(0, 4)).toEqual(['message', 'type', 'param', 'code']);
  expect(error['message']).toMatch(/\S/);
  expect(response.headers.get('content-type')).toContain('application/json');
  expect(response.headers.get('x-request-id')).toMatch(/^req_[0-9a-f]{32}$/);
  expect(upstream.seen).toEqual([]);
}

describe('a body that would cost too much to read', () => {
  const many = (count: number, item: unknown) => Array.from({ length: count }, () => item);
  const fields = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`field_${index}`, '1']));
  const part = { type: 'text', text: 'x' };
  const inputPart = { type: 'input_text', text: 'x' };

  test.each<[string, string, unknown, string | null]>([
    ['4,097 messages', chat, { ...chatBody, messages: many(4_097, user) }, 'messages'],
    ['4,097 input items', responses, { ...responsesBody, input: many(4_097, user) }, 'input'],
    [
      '4,097 parts of one message',
      chat,
      { ...chatBody, messages: [user, { ...user, content: many(4_097, part) }] },
      'messages[1].content',
    ],
    [
      '4,097 parts of one item',
      responses,
      { ...responsesBody, input: [{ ...user, content: many(4_097, inputPart) }] },
      'input[0].content',
    ],
    ['513 fields', chat, { ...chatBody, ...fields(511) }, null],
    [
      '513 fields of a message',
      chat,
      { ...chatBody, messages: [{ ...user, ...fields(511) }] },
      'messages[0]',
    ],
    ['513 entries of metadata', responses, { ...responsesBody, metadata: fields(513) }, 'metadata'],
  ])('is refused before it is read further: %s', async (_, path, body, param) => {
    await expectRefusal(await gateway.post(path, body), 400, 'invalid_value', param);
  });

  test('with the allowed number of messages, parts and fields is accepted', async () => {
    const long = { ...user, content: many(4_096, part) };
    const messages = [...many(4_094, user), long, { ...user, ...fields(510) }];
    expect((await gateway.post(chat, { ...chatBody, messages })).status).toBe(200);
    const whole = { ...responsesBody, input: many(4_096, user), metadata: fields(512) };
    expect((await gateway.post(responses, whole)).status).toBe(200);
    upstream.seen.length = 0;
  });
});

describe('an API key pasted into a path or a name', () => {
  test.each([
    ['GET', '/v1/nope/'],
    ['GET', '/v1/models/'],
    ['GET', '/v1/key/requests/'],
    ['POST', '/elsewhere/'],
  ])('is not quoted in the error: %s %s', async (method, path) => {
    const response = await fetch(`${gateway.url}${path}${gateway.key}`, {
      method,
      headers: { authorization: `Bearer ${gateway.key}` },
    });
    const text = await response.text();
    expect(response.status).toBe(404);
    expect(text).not.toContain(gateway.key.slice(0, 12));
  });
});

describe('a body that the gateway can’t process', () => {
  test.each<[string, string, unknown, number, string, string | null]>([
    ['broken JSON', chat, '{"model":', 400, 'invalid_json', null],
    ['an empty body', chat, '', 400, 'invalid_json', null],
    ['a list', chat, '[]', 400, 'invalid_type', null],
    ['no model', chat, { messages: [user] }, 400, 'missing_required_parameter', 'model'],
    ['a model that is null', chat, { ...chatBody, model: null }, 400, 'invalid_type', 'model'],
    ['a model of another type', chat, { ...chatBody, model: 3 }, 400, 'invalid_type', 'model'],
    ['no messages', chat, { model: 'small' }, 400, 'missing_required_parameter', 'messages'],
    ['empty messages', chat, { model: 'small', messages: [] }, 400, 'empty_array', 'messages'],
    ['messages that are text', chat, { model: 'small', messages: 'x' }, 400, 'invalid_type', 'messages'],
    ['a message that is text', chat, { model: 'small', messages: ['x'] }, 400, 'invalid_type', 'messages[0]'],
    [
      'a message without a role',
      chat,
      { model: 'small', messages: [user, { content: 'x' }] },
      400,
      'missing_required_parameter',
      'messages[1].role',
    ],
    [
      'an unknown role',
      chat,
      { model: 'small', messages: [{ ...user, role: 'wizard' }] },
      400,
      'invalid_value',
      'messages[0].role',
    ],
    [
      'a tool message',
      chat,
      { model: 'small', messages: [{ ...user, role: 'tool' }] },
      400,
      'unsupported_value',
      'messages[0].role',
    ],
    [
      'a message without content',
      chat,
      { model: 'small', messages: [{ role: 'user' }] },
      400,
      'missing_required_parameter',
      'messages[0].content',
    ],
    [
      'an image',
      chat,
      { model: 'small', messages: [{ role: 'user', content: [{ type: 'text', text: 'x' }, image] }] },
      400,
      'unsupported_value',
      'messages[0].content[1].type',
    ],
    [
      'tool calls in the history',
      chat,
      { model: 'small', messages: [{ role: 'assistant', content: 'x', tool_calls: [{}] }] },
      400,
      'unsupported_parameter',
      'messages[0].tool_calls',
    ],
    ['tools', chat, { ...chatBody, tools: [{ type: 'function' }] }, 400, 'unsupported_parameter', 'tools'],
    [
      'a tool choice',
      chat,
      { ...chatBody, tool_choice: 'required' },
      400,
      'unsupported_parameter',
      'tool_choice',
    ],
    [
      'audio out',
      chat,
      { ...chatBody, modalities: ['text', 'audio'] },
      400,
      'unsupported_value',
      'modalities',
    ],
    [
      'a temperature out of range',
      chat,
      { ...chatBody, temperature: 2.5 },
      400,
      'decimal_above_max_value',
      'temperature',
    ],
    [
      'a temperature that is text',
      chat,
      { ...chatBody, temperature: '1' },
      400,
      'invalid_type',
      'temperature',
    ],
    ['a cap below one', chat, { ...chatBody, max_tokens: 0 }, 400, 'integer_below_min_value', 'max_tokens'],
    ['a stream that is text', chat, { ...chatBody, stream: 'true' }, 400, 'invalid_type', 'stream'],
    ['an unknown parameter', chat, { ...chatBody, temprature: 1 }, 400, 'unknown_parameter', 'temprature'],
    [
      'a prototype key',
      chat,
      '{"model":"small","__proto__":{},"messages":[{"role":"user","content":"x"}]}',
      400,
      'unknown_parameter',
      '__proto__',
    ],
    ['an unknown model', chat, { ...chatBody, model: 'gpt-9' }, 404, 'model_not_found', 'model'],
    [
      'a model named like a property',
      chat,
      { ...chatBody, model: 'constructor' },
      404,
      'model_not_found',
      'model',
    ],
    ['no input', responses, { model: 'small' }, 400, 'missing_required_parameter', 'input'],
    ['an empty input', responses, { model: 'small', input: '' }, 400, 'empty_array', 'input'],
    ['an input of another type', responses, { model: 'small', input: 7 }, 400, 'invalid_type', 'input'],
    [
      'an upstream conversation',
      responses,
      { ...responsesBody, previous_response_id: 'resp_1' },
      400,
      'unsupported_parameter',
      'previous_response_id',
    ],
    [
      'a stored conversation',
      responses,
      { ...responsesBody, conversation: 'conv_1' },
      400,
      'unsupported_parameter',
      'conversation',
    ],
    [
      'a stored item',
      responses,
      { model: 'small', input: [{ type: 'item_reference', id: 'msg_1' }] },
      400,
      'unsupported_value',
      'input[0]',
    ],
    [
      'a stored item by its id alone',
      responses,
      { model: 'small', input: [{ id: 'msg_1' }] },
      400,
      'unsupported_value',
      'input[0]',
    ],
    [
      'a tool result',
      responses,
      { model: 'small', input: [{ type: 'function_call_output' }] },
      400,
      'unsupported_value',
      'input[0].type',
    ],
    [
      'an image in the input',
      responses,
      { model: 'small', input: [{ role: 'user', content: [{ type: 'input_image' }] }] },
      400,
      'unsupported_value',
      'input[0].content[0].type',
    ],
    [
      'tools on responses',
      responses,
      { ...responsesBody, tools: [{ type: 'web_search' }] },
      400,
      'unsupported_parameter',
      'tools',
    ],
  ])('is refused: %s', async (_name, path, body, status, code, param) => {
    await expectRefusal(await gateway.post(path, body), status, code, param);
  });

  test.each([
    [chat, { ...chatBody, tools: [{ type: 'function' }] }],
    [chat, { ...chatBody, top_k: 3 }],
    [chat, { ...chatBody, logprobs: true }],
    [chat, { ...chatBody, provider: {} }],
    [responses, { ...responsesBody, previous_response_id: 'resp_1' }],
    [responses, { ...responsesBody, prompt: { id: 'pmpt_1' } }],
  ])('with a parameter that is not available is told once to leave it out: %s %j', async (path, body) => {
    const { error } = (await (await gateway.post(path, body)).json()) as { error: { message: string } };
    expect(error.message).toMatch(/^Unsupported parameter: '\w+'\. .+\. Leave this parameter out\.$/);
    expect(error.message.match(/leave/gi)).toHaveLength(1);
  });

  test('is refused when it is too large, with a content length and without', async () => {
    const large = JSON.stringify({ ...chatBody, messages: [{ ...user, content: 'x'.repeat(1_100_000) }] });
    await expectRefusal(await gateway.post(chat, large), 413, 'request_too_large', null);
    const chunked = new ReadableStream({
      start(controller) {
        controller.enqueue(new TextEncoder().encode(large));
        controller.close();
      },
    });
    const init = { body: chunked, duplex: 'half' } as const;
    await expectRefusal(await gateway.post(chat, '', init), 413, 'request_too_large', null);
  });

  test.each([['text/plain'], ['application/x-www-form-urlencoded'], ['']])(
    'is refused with the content type %s',
    async (type) => {
      const body = new Blob([JSON.stringify(chatBody)]);
      const response = await gateway.post(chat, '', { headers: { 'content-type': type }, body });
      await expectRefusal(response, 415, 'unsupported_content_type', null);
    },
  );

  test('is refused when it is compressed', async () => {
    const headers = { 'content-encoding': 'gzip' };
    await expectRefusal(
      await gateway.post(chat, chatBody, { headers }),
      415,
      'unsupported_content_type',
      null,
    );
  });

  test('is refused when it is not UTF-8', async () => {
    const body = Buffer.concat([Buffer.from('{"model":"'), Buffer.from([0xff, 0xfe]), Buffer.from('"}')]);
    await expectRefusal(await gateway.post(chat, '', { body }), 400, 'invalid_json', null);
  });
});

describe('a client without a valid key', () => {
  const wrong = [
    '',
    'Bearer',
    'Bearer nonsense',
    'Basic c2s6',
    `Bearer sk-tg-${'A'.repeat(12)}-${'b'.repeat(43)}`,
  ];

  test('gets the same 401 on every path, for every kind of wrong key', async () => {
    const bodies = new Set<string>();
    for (const authorization of wrong) {
      const asked = [
        await gateway.post(chat, chatBody, { headers: { authorization } }),
        await gateway.post(responses, responsesBody, { headers: { authorization } }),
        await fetch(`${gateway.url}/v1/models`, { headers: { authorization } }),
        await fetch(`${gateway.url}/v1/models/small`, { headers: { authorization } }),
      ];
      for (const response of asked) {
        bodies.add(await response.clone().text());
        await expectRefusal(response, 401, 'invalid_api_key', null);
      }
    }
    expect(bodies.size).toBe(1);
  });

  test('is asked for a Bearer key, as HTTP requires of a 401', async () => {
    const statuses = [await gateway.post(chat, chatBody, { headers: { authorization: 'Bearer x' } })];
    statuses.push(await fetch(`${gateway.url}/v1/models`), await fetch(`${gateway.adminUrl}/admin/keys`));
    for (const { status, headers } of statuses)
      expect([status, headers.get('www-authenticate')]).toEqual([401, 'Bearer realm="textgate"']);
    expect((await gateway.post(chat, '{')).headers.has('www-authenticate')).toBe(false);
  });

  test.each(['x-api-key', 'api-key', 'x-goog-api-key'])(
    'in %s is refused with the header in which it belongs',
    async (header) => {
      const headers = { [header]: gateway.key };
      const asked = [
        await fetch(`${gateway.url}${chat}`, { method: 'POST', body: '{}', headers }),
        await fetch(`${gateway.url}/v1/models`, { headers }),
      ];
      for (const response of asked) {
        const text = await response.clone().text();
        expect(text).toContain(`The header '${header}' is not read by this service.`);
        expect(text).toContain("Send the key as 'Authorization: Bearer <key>'.");
        expect(text).not.toContain(gateway.key);
        await expectRefusal(response, 401, 'invalid_api_key', null);
      }
      const authorization = `Bearer ${gateway.key}`;
      expect(
        (await fetch(`${gateway.url}/v1/models`, { headers: { ...headers, authorization } })).status,
      ).toBe(200);
    },
  );

  test('is refused before its body is parsed', async () => {
    const response = await gateway.post(chat, '{"broken', { headers: { authorization: 'Bearer x' } });
    await expectRefusal(response, 401, 'invalid_api_key', null);
  });
});

describe('a request without a route', () => {
  test.each([
    ['GET', '/v1/nothing'],
    ['POST', '/v1/embeddings'],
    ['GET', '/'],
    ['GET', '/metrics'],
    ['POST', '/admin/keys'],
    ['GET', '/v1/models/%E0%A4%A'],
  ])('gets 404 unknown_url: %s %s', async (method, path) => {
    await expectRefusal(await fetch(gateway.url + path, { method }), 404, 'unknown_url', null);
  });

  const offer = 'offers text only: POST /v1/chat/completions, POST /v1/responses and GET /v1/models.';
  const elsewhere = "The operators' paths are on the admin listener";
  test.each([
    ['/chat/completions', 'Did you mean /v1/chat/completions?'],
    ['/openai/v1/chat/completions', 'Did you mean /v1/chat/completions?'],
    ['/openai/v1/responses', 'Did you mean /v1/responses?'],
    ['/v1/v1/chat/completions', 'Did you mean /v1/chat/completions?'],
    ['/openai/deployments/small/chat/completions?api-version=1', 'Did you mean /v1/chat/completions?'],
    ['/api/v1/models/org/small', 'Did you mean /v1/models/org/small?'],
    ['/V1/Chat/Completions', 'Did you mean /v1/chat/completions?'],
    ['/v1/Models/Org/Small', 'Did you mean /v1/models/Org/Small?'],
    ['/V1/Key/Requests/req_A', 'Did you mean /v1/key/requests/req_A?'],
    ['/v1/chat/completion', 'Did you mean /v1/chat/completions?'],
    ['/v1/response', 'Did you mean /v1/responses?'],
    ['/v1/keys', 'Did you mean /v1/key?'],
    ['/v1/model', 'Did you mean /v1/models?'],
    ['/vl/key', 'Did you mean /v1/key?'],
    ['/v1/x', offer],
    ['/v1/me', offer],
    ['/v1/user', offer],
    ['/v1/%zz', offer],
    ['/v1/completions', offer],
    ['/v1/embeddings', offer],
    ['/v1/messages', offer],
    ['/v1/images/generations', offer],
    ['/v1/audio/speech', offer],
    ['/v1/responses/resp_1/input_items', offer],
    ['/v1/key/nothing', offer],
    ['/v1beta/models/gemini-x:generateContent', offer],
    ['/', offer],
    ['/metrics', elsewhere],
    ['/admin/keys', elsewhere],
  ])('says at %s what there is instead', async (path, advice) => {
    const response = await fetch(gateway.url + path, { method: 'POST', body: '{}' });
    const { error } = (await response.json()) as { error: { message: string } };
    expect(error.message).toMatch(/^Unknown request URL: POST \/[^?]*\. /);
    expect(error.message).toContain(advice);
  });

  test.each([
    [chat, 'This is the listener for operators'],
    ['/nothing', 'Check the path for typos.'],
  ])('says at %s of the admin listener what that listener is for', async (path, advice) => {
    const response = await fetch(gateway.adminUrl + path);
    const { error } = (await response.json()) as { error: { message: string } };
    expect([response.status, error.message]).toEqual([404, expect.stringContaining(advice)]);
  });

  test.each([
    ['GET', chat, 'POST'],
    ['DELETE', responses, 'POST'],
    ['POST', '/v1/models', 'GET, HEAD'],
    ['DELETE', '/v1/models/small', 'GET, HEAD'],
  ])('gets 405 with the allowed methods: %s %s', async (method, path, allowed) => {
    const response = await fetch(gateway.url + path, { method });
    expect(response.headers.get('allow')).toBe(allowed);
    await expectRefusal(response, 405, 'method_not_allowed', null);
  });
});

describe('a request on the raw socket', () => {
  test('with two credentials is refused, and neither of them is used', async () => {
    const answer = await sendRaw([
      'GET /v1/models HTTP/1.1',
      'Host: x',
      `Authorization: Bearer ${gateway.key}`,
      'Authorization: Bearer other',
      'Connection: close',
    ]);
    expect(answer).toMatch(/^HTTP\/1.1 400 /);
    expect(answer).toContain('"code":"duplicate_header"');
  });

  test('gets an error envelope, too, when it is not HTTP', async () => {
    const answer = await sendRaw(['NONSENSE']);
    expect(answer).toMatch(/^HTTP\/1.1 400 /);
    expect(answer).toMatch(/x-request-id: req_[0-9a-f]{32}/i);
    expect(answer).toContain('"code":"invalid_value"');
  });

  test.each([
    ['GET http://[ HTTP/1.1', 400, 'invalid_value'],
    ['CONNECT example.com:443 HTTP/1.1', 405, 'method_not_allowed'],
    ['POST /v1/responses HTTP/1.1\r\nExpect: a miracle', 417, 'expectation_failed'],
  ])('%j gets an error envelope with the code of its status, and an id', async (line, status, code) => {
    const answer = await sendRaw([line, 'Host: x']);
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(answer).toMatch(/x-request-id: req_[0-9a-f]{32}/i);
    expect(answer).toMatch(/"error":\{"message":/);
    expect(answer).toContain(`"code":"${code}"`);
  });

  test('with Expect: 100-continue is refused for a bad key before 100 Continue, which only a good key gets', async () => {
    const lines = ['POST /v1/responses HTTP/1.1', 'Host: x', 'Expect: 100-continue', 'Connection: close'];
    const type = 'Content-Type: application/json';
    const refused = await sendRaw([...lines, type, 'Content-Length: 999999999']);
    expect(refused).toMatch(/^HTTP\/1.1 401 /);
    const known = [...lines, `Authorization: Bearer ${gateway.key}`, type, 'Content-Length: 2'];
    expect(await sendRaw(known, '{}')).toMatch(/^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 400 /);
  });

  test('with an endless head gets an error envelope, too', async () => {
    const answer = await sendRaw(['GET / HTTP/1.1', `X: ${'y'.repeat(20_000)}`]);
    expect(answer).toContain('"code":"request_too_large"');
  });
});

describe('the variations that client libraries send by themselves', () => {
  test.each([
    'application/json; charset=utf-8',
    'APPLICATION/JSON;charset="UTF8"',
    'application/json;',
    'application/vnd.api+json',
  ])('include JSON content types: %s is accepted', async (type) => {
    const response = await gateway.post(chat, chatBody, { headers: { 'content-type': type } });
    expect(response.status).toBe(200);
    upstream.seen.length = 0;
  });

  test('include duplicate names in the JSON: the model that is looked up is the one that is called', async () => {
    const body = '{"model":"dear","messages":[{"role":"user","content":"x"}],"model":"small"}';
    expect((await gateway.post(chat, body)).status).toBe(200);
    expect(JSON.parse(upstream.seen.at(-1)?.body ?? '')).toMatchObject({ model: 'tiny' });
    upstream.seen.length = 0;
  });

  test('include sampling parameters and neutral fields, which are removed before the upstream, and named in a header', async () => {
    const extras = { temperature: 0.7, top_p: 1, frequency_penalty: 0, presence_penalty: 0, tools: [] };
    const response = await gateway.post(chat, {
      ...chatBody,
      ...extras,
      stream_options: null,
      max_completion_tokens: 8_192,
      max_tokens: 5,
    });
    expect(response.status).toBe(200);
    expect(response.headers.get('x-textgate-stripped')).toBe(Object.keys(extras).join(','));
    expect(JSON.parse(upstream.seen.at(-1)?.body ?? '')).toEqual({
      model: 'tiny',
      messages: [user],
      max_tokens: 8_192,
      stream: false,
    });
  });

  test.each(['9223372036854775807', '-9223372036854775808', '9007199254740993'])(
    'include 64-bit seeds of other languages: %s is accepted',
    async (seed) => {
      const response = await gateway.post(chat, JSON.stringify(chatBody).replace('{', `{"seed":${seed},`));
      expect(response.status).toBe(200);
      expect(response.headers.get('x-textgate-stripped')).toBe('seed');
    },
  );
});

/** Sends lines on a new socket and reads until the gateway closes it. */
function sendRaw(lines: readonly string[], body = ''): Promise<string> {
  const { hostname, port } = new URL(gateway.url);
  return new Promise((resolve) => {
    let answer = '';
    const socket = connect(Number(port), hostname, () =>
      socket.write(`${lines.join('\r\n')}\r\n\r\n${body}`),
    );
    socket.on('data', (chunk) => (answer += chunk.toString()));
    socket.on('error', () => {});
    socket.on('close', () => resolve(answer));
  });
}

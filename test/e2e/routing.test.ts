import type { ServerResponse } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import type { ConfigInput } from '../../src/index.ts';
import { askAdmin } from '../support/admin-client.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { chatFrames, sayTexts, sendJson, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGatewayOptions } from '../support/test-gateway.ts';

/** A message costs one token, so that the numbers in the answers can be read. */
interface Asked {
  readonly messages: readonly { readonly role: string; readonly content: string }[];
}

/** A server that keeps the prompts that it has read, as vLLM does, and reports how much of the next one it had. */
async function startReplica() {
  const upstream = await startUpstream();
  const known = new Set<string>();
  let isDown = false;
  const answer = (response: ServerResponse, { messages }: Asked): void => {
    const prefixes = messages.map((_, index) => JSON.stringify(messages.slice(0, index + 1)));
    const cached = prefixes.filter((prefix) => known.has(prefix)).length;
    for (const prefix of prefixes) known.add(prefix);
    const usage = {
      prompt_tokens: messages.length,
      completion_tokens: 1,
      total_tokens: messages.length + 1,
      prompt_tokens_details: { cached_tokens: cached },
    };
    const chunk = (choices: readonly object[], rest = {}): string =>
      `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices, ...rest })}\n\n`;
    sendStream(response, [
      chunk([{ index: 0, delta: { role: 'assistant', content: 'yes' }, finish_reason: null }]),
      chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]),
      chunk([], { usage }),
      'data: [DONE]\n\n',
    ]).end();
  };
  upstream.play((response, { body }) => {
    if (isDown) sendJson(response, 503, '{"error":{"message":"down"}}');
    else answer(response, JSON.parse(body) as Asked);
  });
  return Object.assign(upstream, {
    goDown: () => void (isDown = true),
    comeBack: () => void (isDown = false),
  });
}

async function open(
  policy: NonNullable<TestGatewayOptions['policy']>,
  upstreams: ConfigInput['upstreams'],
  options: TestGatewayOptions = {},
) {
  const clock = createFakeClock();
  const gateway = await startGateway({
    clock,
    policy,
    upstreams,
    limits: { requestsPerMinute: 100_000 },
    routes: Object.keys(upstreams).map((upstream) => ({ upstream, model: 'm' })),
    ...options,
  });
  onTestFinished(() => gateway.close());
  const listed = async () =>
    (await askAdmin(gateway, 'GET', '/upstreams')).body as {
      data: { name: string; routes: { data: object[] } }[];
    };
  /** The upstream and the result of each attempt of a request. */
  const attemptsOf = async (requestId: string): Promise<readonly string[]> => {
    const { body } = await askAdmin(gateway, 'GET', `/records/${requestId}`);
    const { attempts } = body as { attempts: { upstream: string; result: string }[] };
    return attempts.map(({ upstream, result }) => `${upstream} ${result}`);
  };
  return { gateway, clock, listed, attemptsOf };
}

test('a chat stays on one replica, moves while that is down, and comes back to what its cache still has', async () => {
  const replicas = await Promise.all([startReplica(), startReplica(), startReplica()]);
  onTestFinished(() => Promise.all(replicas.map((replica) => replica.close())).then(() => {}));
  const upstreams = Object.fromEntries(replicas.map(({ url }, index) => [`replica-${index}`, { url }]));
  const { gateway, clock, attemptsOf } = await open('affinity', upstreams);
  let lastAttempts: readonly string[] = [];
  /** Asks one more question of a chat; returns how many messages were read from a cache, and where. */
  const ask = async (chat: { role: 'user' | 'assistant'; content: string }[]) => {
    chat.push({ role: 'user', content: `question ${chat.length}` });
    const { data, response } = await gateway.client.chat.completions
      .create({ model: 'small', messages: chat })
      .withResponse();
    chat.push({ role: 'assistant', content: data.choices[0]?.message.content ?? '' });
    lastAttempts = await attemptsOf(response.headers.get('x-request-id') ?? '');
    const used = lastAttempts.at(-1)?.split(' ')[0] ?? '';
    return { used, cached: data.usage?.prompt_tokens_details?.cached_tokens };
  };

  const homes = new Set<string>();
  for (let number = 0; number < 12; number++) {
    const chat = [{ role: 'user' as const, content: `chat ${number}` }];
    const first = await ask(chat);
    expect(first.cached).toBe(0);
    homes.add(first.used);
    for (let turn = 1; turn <= 3; turn++)
      expect(await ask(chat)).toEqual({ used: first.used, cached: turn * 2 });
  }
  // Where a chat goes follows from the id of its key, which is another one each time: 12 chats may leave a replica out.
  for (let number = 12; homes.size < 3 && number < 80; number++)
    homes.add((await ask([{ role: 'user', content: `chat ${number}` }])).used);
  expect(homes.size).toBe(3);

  const chat = [{ role: 'user' as const, content: 'a chat whose replica goes down' }];
  const { used: home } = await ask(chat);
  const replica = replicas[Number(home.slice(-1))];
  replica?.goDown();
  const moved = await ask(chat);
  expect(moved.used).not.toBe(home);
  expect(lastAttempts[0]).toBe(`${home} error`);
  for (let turn = 1; turn <= 5; turn++)
    expect(await ask(chat)).toEqual({ used: moved.used, cached: 2 * turn + 2 });
  expect(lastAttempts).toEqual([`${moved.used} ok`]);

  replica?.comeBack();
  clock.advance(5_000);
  expect(await ask(chat)).toEqual({ used: home, cached: 2 });
  expect(await ask(chat)).toEqual({ used: home, cached: chat.length - 3 });
});

test('affinity sends requests with the same prompt_cache_key to the same replica, which does not see the key', async () => {
  const replicas = await Promise.all([startReplica(), startReplica(), startReplica()]);
  onTestFinished(() => Promise.all(replicas.map((replica) => replica.close())).then(() => {}));
  const upstreams = Object.fromEntries(replicas.map(({ url }, index) => [`replica-${index}`, { url }]));
  const { gateway } = await open('affinity', upstreams);
  const count = 12;
  for (let number = 0; number < count; number++) {
    const content = `question ${number}`;
    const prompt_cache_key = 'canary-manual';
    const { data, response } = await gateway.client.chat.completions
      .create({ model: 'small', messages: [{ role: 'user', content }], prompt_cache_key })
      .withResponse();
    expect(data.choices[0]?.message.content).toBe('yes');
    expect(response.headers.get('x-textgate-stripped')).toBe('prompt_cache_key');
    const answer = await gateway.client.responses.create({
      model: 'small',
      input: content,
      prompt_cache_key,
    });
    expect(answer.prompt_cache_key).toBe(prompt_cache_key);
  }
  expect(replicas.map(({ seen }) => seen.length).toSorted((one, other) => one - other)).toEqual([
    0,
    0,
    2 * count,
  ]);
  for (const { seen } of replicas) for (const { body } of seen) expect(body).not.toContain('canary');
});

test('measures are listed and outlast a reload, but not another address of the upstream', async () => {
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  upstream.play(sayTexts(['yes']));
  const { gateway, listed, clock } = await open('fastest', { near: { url: upstream.url } });
  const measuredOf = async () => {
    const { data } = await listed();
    return data.find(({ name }) => name === 'near')?.routes.data;
  };
  const unknown = { in_flight: 0, waiting: 0, first_text_ms: null, failing: false };
  expect(await measuredOf()).toMatchObject([{ model: 'small', policy: 'fastest', measured: unknown }]);
  upstream.play((response, request) => {
    clock.advance(250);
    return sayTexts(['yes'])(response, request);
  });
  const body = { model: 'small', messages: [{ role: 'user', content: 'x' }] };
  await (await gateway.post('/v1/chat/completions', body)).text();
  const known = { in_flight: 0, waiting: 0, first_text_ms: 250, failing: false };
  expect(await measuredOf()).toMatchObject([{ measured: known }]);

  type Policy = 'least_in_flight';
  const configWith = (url: string, policy?: Policy, limits: object = {}): ConfigInput => ({
    server: { port: 0 },
    admin: { port: 0, token: gateway.adminToken },
    storage: { url: 'sqlite::memory:' },
    upstreams: { near: { url, ...limits } },
    models: {
      small: {
        routes: [{ upstream: 'near', model: 'm' }],
        free: true,
        ...(policy === undefined ? {} : { policy }),
      },
    },
  });
  gateway.gateway.reload(configWith(upstream.url, 'least_in_flight'));
  expect(await measuredOf()).toMatchObject([{ policy: 'least_in_flight', measured: known }]);
  gateway.gateway.reload(configWith(upstream.url, 'least_in_flight', { maxInFlight: 4 }));
  expect(await measuredOf()).toMatchObject([{ policy: 'least_in_flight', measured: known }]);
  gateway.gateway.reload(configWith(upstream.url.replace('127.0.0.1', 'localhost'), 'least_in_flight'));
  expect(await measuredOf()).toMatchObject([{ measured: unknown }]);
  gateway.gateway.reload(configWith(upstream.url));
  expect(await measuredOf()).toMatchObject([{ policy: null, measured: null }]);
});

test.each<[string, number, object, boolean]>([
  ['a fault of the server', 500, {}, true],
  ['a rate limit', 429, {}, true],
  ['that it has no such model', 404, {}, true],
  ['a fault of the request', 400, { message: 'no' }, false],
  ['what may be words of the request', 400, { message: 'the maximum context length is 4096 tokens' }, false],
])(
  'a route is failing for 10 s after an answer that says %s: only if the route is at fault',
  async (...row) => {
    const [, status, error, isFailing] = row;
    const upstream = await startUpstream();
    onTestFinished(() => upstream.close());
    upstream.play((response) => sendJson(response, status, JSON.stringify({ error })));
    const { gateway, listed, clock } = await open('order', { near: { url: upstream.url } });
    const body = { model: 'small', messages: [{ role: 'user', content: 'x' }] };
    await (await gateway.post('/v1/chat/completions', body)).text();
    const failing = { policy: 'order', measured: { in_flight: 0, first_text_ms: null, failing: isFailing } };
    expect((await listed()).data.at(-1)?.routes.data).toMatchObject([failing]);
    clock.advance(10_000);
    expect((await listed()).data.at(-1)?.routes.data).toMatchObject([{ measured: { failing: false } }]);
  },
);

/** Two upstreams that begin an answer, and end it when `end` is called. */
async function startHolding() {
  const upstreams = [await startUpstream(), await startUpstream()] as const;
  onTestFinished(() => Promise.all(upstreams.map((upstream) => upstream.close())).then(() => {}));
  const [begin = '', text = '', ...rest] = chatFrames(['yes']);
  const held: ServerResponse[] = [];
  for (const upstream of upstreams)
    upstream.play((response) => void held.push(sendStream(response, [begin, text])));
  const end = (): void => {
    for (const response of held.splice(0)) response.end(rest.join(''));
  };
  return { upstreams, config: { a: { url: upstreams[0].url }, b: { url: upstreams[1].url } }, end };
}

test('least_in_flight shares running streams equally, and by weight', async () => {
  for (const [weight, expected] of [
    [1, [4, 4]],
    [3, [6, 2]],
  ] as const) {
    const { upstreams, config, end } = await startHolding();
    const routes = [
      { upstream: 'a', model: 'm', weight },
      { upstream: 'b', model: 'm', weight: 1 },
    ];
    const limits = { concurrency: 8 };
    const { gateway } = await open('least_in_flight', config, { routes, limits });
    const asked = { model: 'small', stream: true, messages: [{ role: 'user', content: 'x' }] };
    const answers: Promise<string>[] = [];
    for (let request = 0; request < 8; request++)
      answers.push((await gateway.post('/v1/chat/completions', asked)).text());
    expect(upstreams.map(({ running }) => running)).toEqual(expected);
    end();
    for (const text of await Promise.all(answers)) expect(text).toContain('[DONE]');
  }
});

test('cheapest goes by the cost of the routes, and clients pay the price of the model', async () => {
  const { upstreams, config } = await startHolding();
  for (const upstream of upstreams) upstream.play(sayTexts(['yes']));
  const routes = [
    { upstream: 'a', model: 'm', cost: { input: '5', output: '1' } },
    { upstream: 'b', model: 'm', cost: { input: '1', output: '2' } },
  ];
  const price = { input: '1', output: '1' };
  const { gateway } = await open('cheapest', config, { routes, price });
  const ask = async (content: string, cap: number): Promise<string | null> => {
    const body = { model: 'small', max_tokens: cap, messages: [{ role: 'user', content }] };
    const response = await gateway.post('/v1/chat/completions', body);
    await response.text();
    return response.headers.get('x-textgate-charge');
  };
  const charges = [await ask('x', 2_000), await ask('long '.repeat(4_000), 100)];
  expect(upstreams.map(({ seen }) => seen.map(({ body }) => body.length > 10_000))).toEqual([
    [false],
    [true],
  ]);
  expect(charges).toEqual(['0.000018', '0.000018']);
});

test('the cheapest route that is at its limit is passed over while another one has room', async () => {
  const { upstreams, config, end } = await startHolding();
  const routes = [
    { upstream: 'a', model: 'm', cost: { input: '1', output: '1' } },
    { upstream: 'b', model: 'm', cost: { input: '2', output: '2' } },
  ];
  const limited = { a: { ...config.a, maxInFlight: 1 }, b: config.b };
  const { gateway } = await open('cheapest', limited, { routes });
  const asked = { model: 'small', stream: true, messages: [{ role: 'user', content: 'x' }] };
  const first = await gateway.post('/v1/chat/completions', asked);
  const second = await gateway.post('/v1/chat/completions', asked);
  expect(upstreams.map(({ running }) => running)).toEqual([1, 1]);
  end();
  for (const answer of [first, second]) expect(await answer.text()).toContain('[DONE]');
});

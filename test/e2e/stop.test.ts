import OpenAI from 'openai';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createGateway } from '../../src/index.ts';
import type { ConfigInput } from '../../src/index.ts';
import { askAdmin } from '../support/admin-client.ts';
import { eventually } from '../support/eventually.ts';
import { sayTexts, sendJson, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import type { Script } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGatewayOptions } from '../support/test-gateway.ts';

type Dialects = NonNullable<ConfigInput['upstreams'][string]['dialects']>;

const chat = { model: 'small', messages: [{ role: 'user', content: 'Count.' }] };
const stop = ['\n', 'END'];

/** One upstream for each dialect, all of them routes of `small` in this order. */
async function open(dialects: readonly Dialects[number][], options: TestGatewayOptions = {}) {
  const upstreams = await Promise.all(dialects.map(() => startUpstream()));
  const named = upstreams.map(({ url }, at) => [`${dialects[at]}${at}`, { url, dialects: [dialects[at]] }]);
  const gateway = await startGateway({
    upstreams: Object.fromEntries(named) as ConfigInput['upstreams'],
    routes: named.map(([upstream]) => ({ upstream: upstream as string, model: 'm' })),
    ...options,
  });
  onTestFinished(async () => {
    await gateway.close();
    await Promise.all(upstreams.map((upstream) => upstream.close()));
  });
  const ask = async (body: object) => {
    const response = await gateway.post('/v1/chat/completions', { ...chat, ...body });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  return { gateway, upstreams, ask };
}

const sentTo = ({ seen }: Awaited<ReturnType<typeof startUpstream>>) =>
  seen.map(({ body }) => JSON.parse(body) as Record<string, unknown>);

const usage = { input_tokens: 4, output_tokens: 2 };

/** A message of Anthropic's that ended at a stop sequence: streamed, or with nothing before it. */
const anthropicSays: Script = (response, { body }) => {
  if (!(JSON.parse(body) as { stream: boolean }).stream)
    return sendJson(
      response,
      200,
      JSON.stringify({
        type: 'message',
        content: [],
        stop_reason: 'stop_sequence',
        stop_sequence: 'END',
        usage,
      }),
    );
  const events = [
    { type: 'message_start', message: { usage } },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'one' } },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'stop_sequence', stop_sequence: 'END' }, usage },
    { type: 'message_stop' },
  ];
  sendStream(
    response,
    events.map((event) => `data: ${JSON.stringify(event)}\n\n`),
  ).end();
};

const geminiSays: Script = (response) => {
  const candidates = [{ content: { parts: [{ text: 'one' }] }, finishReason: 'STOP' }];
  const usageMetadata = { promptTokenCount: 4, candidatesTokenCount: 2, totalTokenCount: 6 };
  sendJson(response, 200, JSON.stringify({ candidates, usageMetadata }));
};

describe('the stop sequences of a request', () => {
  test.each([
    ['chat', sayTexts(['one']), (body: object) => body, 'stop'],
    ['anthropic', anthropicSays, (body: object) => body, 'stop_sequences'],
    [
      'gemini',
      geminiSays,
      ({ generationConfig }: { generationConfig?: object }) => generationConfig ?? {},
      'stopSequences',
    ],
  ] as const)(
    'reach an upstream of the dialect %s by its name, and their end is stop',
    async (dialect, script, settingsOf, name) => {
      const {
        upstreams: [upstream],
        ask,
      } = await open([dialect]);
      upstream?.play(script);
      const { status, body } = await ask({ stop: ['END', 'two'] });
      expect([status, body['choices']]).toMatchObject([200, [{ finish_reason: 'stop' }]]);
      await ask({ stop: 'END' });
      await ask({ stop: null });
      await ask({ stop: '' });
      const sent = sentTo(upstream as never).map(
        (seen) => (settingsOf(seen) as Record<string, unknown>)[name],
      );
      expect(sent).toEqual([['END', 'two'], ['END'], undefined, undefined]);
    },
  );

  test('are those of the openai client, in a stream that Anthropic ends at one of them', async () => {
    const {
      upstreams: [upstream],
      gateway,
    } = await open(['anthropic']);
    upstream?.play(anthropicSays);
    const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: gateway.key, maxRetries: 0 });
    const stream = client.chat.completions.stream({
      model: 'small',
      messages: [{ role: 'user', content: 'Count.' }],
      stop: 'END',
    });
    const [choice] = (await stream.finalChatCompletion()).choices;
    expect([choice?.message.content, choice?.finish_reason]).toEqual(['one', 'stop']);
    expect(sentTo(upstream as never)).toMatchObject([{ stop_sequences: ['END'] }]);
  });

  test('choose the routes that take them, and all attempts have them', async () => {
    const { upstreams, ask } = await open(['responses', 'chat', 'anthropic', 'chat']);
    const [responses, first, anthropic, second] = upstreams;
    for (const failing of [responses, first, anthropic])
      failing?.play((response) => sendJson(response, 500, '{"error":{"message":"no"}}'));
    second?.play(sayTexts(['one']));
    expect((await ask({ stop })).status).toBe(200);
    // Anthropic takes no sequence of white space alone.
    expect(upstreams.map(({ seen }) => seen.length)).toEqual([0, 1, 0, 1]);
    expect([first, second].map((upstream) => sentTo(upstream as never)[0]?.['stop'])).toEqual([stop, stop]);
    expect((await ask({ stop: 'END' })).status).toBe(200);
    expect(upstreams.map(({ seen }) => seen.length)).toEqual([0, 2, 1, 2]);
    expect((await ask({})).status).toBe(200);
    expect(responses?.seen).toHaveLength(1);
  });

  test.each(['order', 'least_in_flight', 'affinity', 'fastest'] as const)(
    'leave a route out by the policy %s, too',
    async (policy) => {
      const { upstreams, ask } = await open(['responses', 'chat'], { policy });
      upstreams[1]?.play(sayTexts(['one']));
      for (let round = 0; round < 4; round++) expect((await ask({ stop })).status).toBe(200);
      expect(upstreams.map(({ seen }) => seen.length)).toEqual([0, 4]);
    },
  );

  test('are refused where no route of the model takes them, and nothing is sent', async () => {
    const { upstreams, ask } = await open(['responses']);
    const { status, body } = await ask({ stop });
    expect([status, body]).toMatchObject([400, { error: { code: 'unsupported_parameter', param: 'stop' } }]);
    expect((body['error'] as { message: string }).message).toContain('Leave this parameter out.');
    expect(upstreams[0]?.seen).toEqual([]);
  });

  test('are sent with a hedge’s second request, and never to a route without them', async () => {
    const { upstreams, gateway } = await open(['chat', 'responses', 'chat'], {
      settings: { hedge: { after: '10ms', budget: '100%' } },
    });
    upstreams[0]?.play(() => {});
    upstreams[2]?.play(sayTexts(['one']));
    const response = await gateway.post('/v1/chat/completions', { ...chat, stop });
    expect((await response.json()) as object).toMatchObject({ choices: [{ message: { content: 'one' } }] });
    expect(upstreams.map((upstream) => sentTo(upstream).map(({ stop: sent }) => sent))).toEqual([
      [stop],
      [],
      [stop],
    ]);
  });

  test('are hidden in what a failing upstream says', async () => {
    const {
      upstreams: [upstream],
      ask,
    } = await open(['chat']);
    upstream?.play((response) =>
      sendJson(
        response,
        400,
        '{"error":{"message":"can not stop at \'my own secret sequence of words\' here","type":"invalid_request_error"}}',
      ),
    );
    const { status, body } = await ask({ stop: 'my own secret sequence of words' });
    expect(status).toBe(400);
    expect(JSON.stringify(body)).not.toContain('secret sequence');
  });

  test('are those of the built-in demo', async () => {
    const gateway = createGateway(
      {
        upstreams: { demo: { url: 'demo:' } },
        models: { small: { routes: [{ upstream: 'demo', model: 'demo' }], free: true } },
      },
      {},
    );
    onTestFinished(() => gateway.close());
    const { key } = await gateway.keys.create({ name: 'a' });
    const response = await gateway.fetch(
      new Request('http://x/v1/chat/completions', {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ ...chat, stop: ['You', 'textgate'] }),
      }),
    );
    expect(await response.json()).toMatchObject({
      choices: [{ message: { content: 'Hello from ' }, finish_reason: 'stop' }],
    });
  });
});

test.each([
  ['chat', 1, {}],
  ['responses', 0, { stop: 1 }],
] as const)(
  'a shadow of the dialect %s gets %i requests with stop sequences',
  async (dialect, count, skipped) => {
    const [local, other] = await Promise.all([startUpstream(), startUpstream()]);
    const gateway = await startGateway({
      upstreamUrl: local.url,
      upstreams: { other: { url: other.url, dialects: [dialect] } },
      shadow: { route: { upstream: 'other', model: 'big' }, share: 1, free: true },
    });
    onTestFinished(async () => {
      await gateway.close();
      await Promise.all([local.close(), other.close()]);
    });
    for (const upstream of [local, other]) upstream.play(sayTexts(['one']));
    await (await gateway.post('/v1/chat/completions', { ...chat, stop })).text();
    const view = async () =>
      ((await askAdmin(gateway, 'GET', '/shadow')).body as { data: { skipped: object; requests: object }[] })
        .data[0];
    await eventually('the shadow has ended or was left out', async () => {
      const { skipped: left = {}, requests = {} } = (await view()) ?? {};
      return Object.keys(left).length + Object.keys(requests).length === 1;
    });
    expect((await view())?.skipped).toEqual(skipped);
    expect(sentTo(other).map(({ stop: sent }) => sent)).toEqual(Array.from({ length: count }, () => stop));
  },
);

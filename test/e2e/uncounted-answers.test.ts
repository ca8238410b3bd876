import { once } from 'node:events';
import { createServer } from 'node:net';
import type { ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type OpenAI from 'openai';
import type { ChatCompletionMessageParam, CompletionUsage } from 'openai/resources';
import type { ResponseUsage } from 'openai/resources/responses/responses';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { askAdmin } from '../support/admin-client.ts';
import { eventually } from '../support/eventually.ts';
import { readLive } from '../support/live-answer.ts';
import { chatFrames, sendJson, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway, TestGatewayOptions } from '../support/test-gateway.ts';

/** Answers without usage, or with wrong usage, are charged by the gateway's own count. */
const nanosPerInput = 1_000;
const nanosPerOutput = 2_000;
const price = { input: '1', cacheWrite: '1', output: '2' };
const streaming = { model: 'small', stream: true, messages: [{ role: 'user', content: 'x' }] };
/** One token for the question, and four around its only turn. */
const inputTokens = 5;
/** One token, also when it is repeated: texts are counted in pieces of 2,048 characters, which it divides. */
const word = ' yes';

let upstream: ScriptedUpstream;
/** The one of all tests that need no other: the thread that counts its tokens takes a quarter of a second to start. */
let usual: TestGateway;
let gateway: TestGateway;
let log: { readonly msg?: string; readonly level?: number }[];
beforeAll(async () => {
  upstream = await startUpstream();
  usual = await start({ price });
});
beforeEach(() => {
  gateway = usual;
  upstream.seen.length = 0;
  log = [];
});
afterAll(async () => {
  await usual.close();
  await upstream.close();
});

const start = (options: TestGatewayOptions): Promise<TestGateway> =>
  startGateway({
    upstreamUrl: upstream.url,
    logDestination: { write: (line) => void log.push(JSON.parse(line) as (typeof log)[number]) },
    ...options,
  });

/** Has another gateway for the rest of the test. */
async function open(options: TestGatewayOptions): Promise<void> {
  const opened = await start(options);
  gateway = opened;
  onTestFinished(() => opened.close());
}

/** A key with ten dollars, and functions for its requests. */
async function makeKey() {
  const { key, secret } = await gateway.gateway.createKey('payer', { balanceNanos: 10_000_000_000 });
  const headers = { authorization: `Bearer ${secret}` };
  return {
    client: gateway.client.withOptions({ apiKey: secret }),
    ask: (body: object = streaming, signal: AbortSignal | null = null) =>
      gateway.post('/v1/chat/completions', body, { headers, signal }),
    spent: async () =>
      Math.round(Number((await askAdmin(gateway, 'GET', `/keys/${key.id}`)).body.spent) * 1e9),
    lastRecord: async () => (await askAdmin(gateway, 'GET', `/records?limit=1&key=${key.id}`)).body.data[0],
  };
}

const running = async (): Promise<number> => (await askAdmin(gateway, 'GET', '/in-flight')).body.data.length;
const balanced = async (): Promise<unknown> => (await askAdmin(gateway, 'GET', '/ledger')).body.faults;
const chunk = (delta: object, extra: object = {}) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: null }], ...extra })}\n\n`;

describe('a long answer whose client disconnects one frame before the end', () => {
  const words = 3_500;
  const frames = chatFrames(Array.from({ length: words }, () => word)).slice(0, -3);

  async function leaveAtTheEnd(limits: TestGatewayOptions['limits']): Promise<number> {
    if (limits !== undefined) await open({ price, limits });
    upstream.play((response) => void sendStream(response, frames));
    const { ask, spent } = await makeKey();
    const leaving = new AbortController();
    const answer = readLive(ask(streaming, leaving.signal));
    await eventually('all words have arrived', () => answer.text.split(word).length > words);
    leaving.abort();
    await answer.ended;
    await eventually('no request is in progress', async () => (await running()) === 0);
    expect(await balanced()).toEqual([]);
    return spent();
  }

  test('is charged in full in soft mode, although the hold covered only 1,024 tokens', async () => {
    expect(await leaveAtTheEnd(undefined)).toBe(inputTokens * nanosPerInput + words * nanosPerOutput);
  });

  test('is charged up to its hold in strict mode', async () => {
    const hold = (1 + 2 * 16 + 4_096) * nanosPerInput + 1_024 * nanosPerOutput;
    expect(await leaveAtTheEnd({ balanceMode: 'strict' })).toBe(hold);
  });
});

describe('reasoning without usage', () => {
  const thinking = Array.from({ length: 2_000 }, () => chunk({ reasoning_content: word }));

  test('is counted as output, and recorded as a part of it', async () => {
    upstream.play((response) => {
      sendStream(response, [
        ...thinking,
        ...chatFrames([word]).filter((frame) => !frame.includes('usage')),
      ]).end();
    });
    const { ask, lastRecord } = await makeKey();
    expect((await (await ask()).text()).split(word)).toHaveLength(2);
    expect(await lastRecord()).toMatchObject({
      outcome: 'completed',
      usage_source: 'counted',
      usage: { output_tokens: 2_001, reasoning_tokens: 2_000 },
    });
    expect(await balanced()).toEqual([]);
  });
});

describe('an answer whose upstream reports no usage', () => {
  const silent = (response: ServerResponse, request: { readonly body: string }): void => {
    const { stream } = JSON.parse(request.body) as { stream: boolean };
    const frames = [chunk({ reasoning_content: word }), ...chatFrames([word, word])];
    if (stream)
      return void sendStream(
        response,
        frames.filter((frame) => !frame.includes('"usage"')),
      ).end();
    const message = { role: 'assistant', content: word + word, reasoning_content: word };
    sendJson(response, 200, JSON.stringify({ choices: [{ index: 0, message, finish_reason: 'stop' }] }));
  };
  const messages = streaming.messages as ChatCompletionMessageParam[];
  /** How each kind of client gets its usage: input, output and reasoning tokens. */
  const clients: Readonly<Record<string, (client: OpenAI) => Promise<readonly unknown[]>>> = {
    'the body of a chat completion': async (client) =>
      chatCounts((await client.chat.completions.create({ model: 'small', messages })).usage),
    'the last chunk of a chat stream': async (client) => {
      const chunks = await client.chat.completions.create({
        model: 'small',
        messages,
        stream: true,
        stream_options: { include_usage: true },
      });
      return chatCounts((await Array.fromAsync(chunks)).at(-1)?.usage);
    },
    'the body of a response': async (client) =>
      responseCounts((await client.responses.create({ model: 'small', input: 'x' })).usage),
    'the last event of a response stream': async (client) =>
      responseCounts((await client.responses.stream({ model: 'small', input: 'x' }).finalResponse()).usage),
  };
  const chatCounts = (usage: CompletionUsage | null | undefined) => [
    usage?.prompt_tokens,
    usage?.completion_tokens,
    usage?.completion_tokens_details?.reasoning_tokens,
    usage?.total_tokens,
  ];
  const responseCounts = (usage: ResponseUsage | undefined) => [
    usage?.input_tokens,
    usage?.output_tokens,
    usage?.output_tokens_details.reasoning_tokens,
    usage?.total_tokens,
  ];

  test.each(Object.entries(clients))('shows the counted and charged tokens in %s', async (_place, read) => {
    upstream.play(silent);
    const { client, lastRecord, spent } = await makeKey();
    const shown = await read(client);
    const record = await lastRecord();
    expect(shown).toEqual([inputTokens, 3, 1, inputTokens + 3]);
    expect(record.usage_source).toBe('counted');
    const {
      input_tokens: input,
      output_tokens: output,
      reasoning_tokens: thought,
      total_tokens: total,
    } = record.usage;
    expect([input, output, thought, total]).toEqual(shown);
    expect(await spent()).toBe(inputTokens * nanosPerInput + 3 * nanosPerOutput);
  });

  test.each(Object.entries(clients))('shows them for a free model, too, in %s', async (_place, read) => {
    await open({});
    upstream.play(silent);
    expect(await read(gateway.client)).toEqual([inputTokens, 3, 1, inputTokens + 3]);
  });

  test('has no usage chunk unless the client asks for one', async () => {
    upstream.play(silent);
    const { ask } = await makeKey();
    expect(await (await ask()).text()).not.toContain('usage');
  });
});

describe('a client that disconnects before the first byte', () => {
  test('pays for the question when a whole answer was requested from the upstream', async () => {
    upstream.play(() => {});
    const { ask, lastRecord, spent } = await makeKey();
    const leaving = new AbortController();
    const asked = ask({ ...streaming, stream: false }, leaving.signal).catch(() => {});
    await eventually('the upstream is asked', () => upstream.seen.length === 1);
    leaving.abort();
    await asked;
    await eventually('no request is in progress', async () => (await running()) === 0);
    expect(await lastRecord()).toMatchObject({ usage: { input_tokens: inputTokens, output_tokens: 0 } });
    expect(await spent()).toBe(inputTokens * nanosPerInput);
    expect(await balanced()).toEqual([]);
  });

  test('pays nothing for a whole answer while the gateway still connects to the upstream', async () => {
    // It accepts connections, but never answers the TLS handshake, so that nothing can be sent to it.
    const silent = createServer((socket) => void socket.on('error', () => {}));
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const connected = once(silent, 'connection') as Promise<Socket[]>;
    const { port } = silent.address() as AddressInfo;
    await open({ price, upstreamUrl: `https://127.0.0.1:${port}/v1` });
    const { ask, lastRecord, spent } = await makeKey();
    const leaving = new AbortController();
    const asked = ask({ ...streaming, stream: false }, leaving.signal).catch(() => {});
    const [socket] = await connected;
    leaving.abort();
    await asked;
    await eventually('no request is in progress', async () => (await running()) === 0);
    socket?.destroy();
    silent.close();
    expect(await lastRecord()).toMatchObject({ outcome: 'client_closed', usage_source: 'none' });
    expect(await spent()).toBe(0);
    expect(await balanced()).toEqual([]);
  });

  test('pays nothing for a stream, because a silent stream has no output yet', async () => {
    upstream.play((response) => void sendStream(response, []));
    const { ask, spent } = await makeKey();
    const leaving = new AbortController();
    const asked = ask(streaming, leaving.signal).catch(() => {});
    await eventually('the upstream is asked', () => upstream.seen.length === 1);
    leaving.abort();
    await asked;
    await eventually('no request is in progress', async () => (await running()) === 0);
    expect(await spent()).toBe(0);
  });
});

describe('impossible usage', () => {
  const answer = (usage: object): string =>
    JSON.stringify({
      choices: [{ index: 0, message: { role: 'assistant', content: ' yes yes' }, finish_reason: 'stop' }],
      usage,
    });
  const violationsOf = async (kind: string): Promise<number> => {
    const metrics = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
    const sample = `textgate_upstream_protocol_violations_total{upstream="local",kind="${kind}"} `;
    return Number(metrics.split(sample)[1]?.split('\n')[0] ?? 0);
  };

  test.each([
    ['implausible_usage', { prompt_tokens: 1e9, completion_tokens: 2 }],
    ['implausible_usage', { prompt_tokens: 10, completion_tokens: 2e11 }],
    ['missing_usage', { prompt_tokens: 10 }],
    ['missing_usage', { prompt_tokens: 10, completion_tokens: -3 }],
    ['missing_usage', { total_tokens: 500 }],
    ['missing_usage', { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }],
  ])('is replaced by the gateway’s own count (%s): %j', async (kind, usage) => {
    upstream.play((response) => sendJson(response, 200, answer(usage)));
    const { ask, lastRecord, spent } = await makeKey();
    const before = await violationsOf(kind);
    const shown = (await (await ask({ ...streaming, stream: false })).json()) as { usage: object };
    expect(shown.usage).toMatchObject({ prompt_tokens: inputTokens, completion_tokens: 2 });
    expect(await lastRecord()).toMatchObject({
      usage_source: 'counted',
      usage: { input_tokens: inputTokens, output_tokens: 2 },
    });
    expect(await spent()).toBe(inputTokens * nanosPerInput + 2 * nanosPerOutput);
    expect(await violationsOf(kind)).toBe(before + 1);
    const told = log.filter(({ level }) => level === 50);
    expect(told.map(({ msg }) => msg)).toEqual(
      kind === 'implausible_usage' ? ['implausible usage from an upstream: counted instead'] : [],
    );
    expect(await balanced()).toEqual([]);
  });
});

import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { askAdmin } from '../support/admin-client.ts';
import { eventually } from '../support/eventually.ts';
import { readLive } from '../support/live-answer.ts';
import { chatFrames, sendJson, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway, TestGatewayOptions } from '../support/test-gateway.ts';

/** Answers whose usage the upstream does not say, or says wrong, are paid for by the gateway's own count. */
const nanosPerInput = 1_000;
const nanosPerOutput = 2_000;
const price = { input: '1', cacheWrite: '1', output: '2' };
const streaming = { model: 'small', stream: true, messages: [{ role: 'user', content: 'x' }] };
/** One token of the question and four around its one turn. */
const inputTokens = 5;
/** One token, also where it is repeated: texts are counted in pieces of 2,048 characters, which it fills exactly. */
const word = ' yes';

let upstream: ScriptedUpstream;
let gateway: TestGateway;
let log: { readonly msg?: string; readonly level?: number }[];
beforeEach(async () => {
  upstream = await startUpstream();
});
afterEach(async () => {
  await gateway.close();
  await upstream.close();
});

async function open(options: TestGatewayOptions = {}): Promise<void> {
  log = [];
  const logDestination = { write: (line: string) => void log.push(JSON.parse(line) as (typeof log)[number]) };
  gateway = await startGateway({ upstreamUrl: upstream.url, price, logDestination, ...options });
}

/** A key with ten dollars, and what it can do. */
async function makeKey() {
  const { key, secret } = await gateway.gateway.createKey('payer', { balanceNanos: 10_000_000_000 });
  const headers = { authorization: `Bearer ${secret}` };
  return {
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

describe('a long answer that its client leaves one frame before the end', () => {
  const words = 5_000;
  const frames = chatFrames(Array.from({ length: words }, () => word)).slice(0, -3);

  async function leaveAtTheEnd(limits: TestGatewayOptions['limits']): Promise<number> {
    await open(limits === undefined ? {} : { limits });
    upstream.play((response) => void sendStream(response, frames));
    const { ask, spent } = await makeKey();
    const leaving = new AbortController();
    const answer = readLive(ask(streaming, leaving.signal));
    await eventually('all words have come', () => answer.text.split(word).length > words);
    leaving.abort();
    await answer.ended;
    await eventually('nothing runs', async () => (await running()) === 0);
    expect(await balanced()).toEqual([]);
    return spent();
  }

  test('is paid for in full in soft mode, though only 1,024 tokens were held for it', async () => {
    expect(await leaveAtTheEnd(undefined)).toBe(inputTokens * nanosPerInput + words * nanosPerOutput);
  });

  test('is paid for up to its hold in strict mode', async () => {
    const hold = (1 + 2 * 16 + 4_096) * nanosPerInput + 1_024 * nanosPerOutput;
    expect(await leaveAtTheEnd({ balanceMode: 'strict' })).toBe(hold);
  });
});

describe('thoughts without usage', () => {
  const thinking = Array.from({ length: 2_000 }, () => chunk({ reasoning_content: word }));

  test('are counted as output, and shown as its part', async () => {
    await open();
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

describe('a client that leaves before anything came', () => {
  test('pays for the question of a whole answer that the upstream was asked for', async () => {
    await open();
    upstream.play(() => {});
    const { ask, lastRecord, spent } = await makeKey();
    const leaving = new AbortController();
    const asked = ask({ ...streaming, stream: false }, leaving.signal).catch(() => {});
    await eventually('it is asked', () => upstream.seen.length === 1);
    leaving.abort();
    await asked;
    await eventually('nothing runs', async () => (await running()) === 0);
    expect(await lastRecord()).toMatchObject({ usage: { input_tokens: inputTokens, output_tokens: 0 } });
    expect(await spent()).toBe(inputTokens * nanosPerInput);
    expect(await balanced()).toEqual([]);
  });

  test('pays nothing for a whole answer while the upstream is still being connected to', async () => {
    // It takes connections, and never answers the greeting of TLS: nothing can be sent to it.
    const silent = createServer((socket) => void socket.on('error', () => {}));
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const connected = once(silent, 'connection') as Promise<Socket[]>;
    const { port } = silent.address() as AddressInfo;
    await open({ upstreamUrl: `https://127.0.0.1:${port}/v1` });
    const { ask, lastRecord, spent } = await makeKey();
    const leaving = new AbortController();
    const asked = ask({ ...streaming, stream: false }, leaving.signal).catch(() => {});
    const [socket] = await connected;
    leaving.abort();
    await asked;
    await eventually('nothing runs', async () => (await running()) === 0);
    socket?.destroy();
    silent.close();
    expect(await lastRecord()).toMatchObject({ outcome: 'client_closed', usage_source: 'none' });
    expect(await spent()).toBe(0);
    expect(await balanced()).toEqual([]);
  });

  test('pays nothing for a stream, in which silence says that nothing was written', async () => {
    await open();
    upstream.play((response) => void sendStream(response, []));
    const { ask, spent } = await makeKey();
    const leaving = new AbortController();
    const asked = ask(streaming, leaving.signal).catch(() => {});
    await eventually('it is asked', () => upstream.seen.length === 1);
    leaving.abort();
    await asked;
    await eventually('nothing runs', async () => (await running()) === 0);
    expect(await spent()).toBe(0);
  });
});

describe('usage that can not be true', () => {
  const answer = (usage: object): string =>
    JSON.stringify({
      choices: [{ index: 0, message: { role: 'assistant', content: ' yes yes' }, finish_reason: 'stop' }],
      usage,
    });
  const metrics = async (): Promise<string> => (await fetch(`${gateway.adminUrl}/metrics`)).text();

  test.each([
    ['implausible_usage', { prompt_tokens: 1e9, completion_tokens: 2 }],
    ['implausible_usage', { prompt_tokens: 10, completion_tokens: 2e11 }],
    ['missing_usage', { prompt_tokens: 10 }],
    ['missing_usage', { prompt_tokens: 10, completion_tokens: -3 }],
    ['missing_usage', { total_tokens: 500 }],
    ['missing_usage', { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }],
  ])('is counted instead, as %s: %j', async (kind, usage) => {
    await open();
    upstream.play((response) => sendJson(response, 200, answer(usage)));
    const { ask, lastRecord, spent } = await makeKey();
    await (await ask({ ...streaming, stream: false })).text();
    expect(await lastRecord()).toMatchObject({
      usage_source: 'counted',
      usage: { input_tokens: inputTokens, output_tokens: 2 },
    });
    expect(await spent()).toBe(inputTokens * nanosPerInput + 2 * nanosPerOutput);
    expect(await metrics()).toContain(
      `textgate_upstream_protocol_violations_total{upstream="local",kind="${kind}"} 1`,
    );
    const told = log.filter(({ level }) => level === 50);
    expect(told.map(({ msg }) => msg)).toEqual(
      kind === 'implausible_usage' ? ['implausible usage from an upstream: counted instead'] : [],
    );
    expect(await balanced()).toEqual([]);
  });
});

import { expect, onTestFinished, test } from 'vitest';
import { askAdmin } from '../support/admin-client.ts';
import { cut, sendJson, sendStream } from '../support/scripted-upstream.ts';
import type { Script } from '../support/scripted-upstream.ts';
import { openStage } from '../support/stage.ts';
import { startGateway } from '../support/test-gateway.ts';

/** What users of other gateways reported in public within a year, with inputs of our own: none of it happens here. */
const { upstream, gateway } = await openStage({ price: { input: '1', output: '2' } });
const messages = [{ role: 'user' as const, content: 'How many?' }];

const frame = (delta: object, extra: object = {}, reason: string | null = null): string =>
  `data: ${JSON.stringify({ id: 'a', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: reason }], ...extra })}\n\n`;
const usage = { prompt_tokens: 2_852, completion_tokens: 31, total_tokens: 2_883 };
const done = 'data: [DONE]\n\n';
const play = (...frames: readonly string[]): void =>
  upstream.play((response) => void sendStream(response, frames).end());

/** The chunks of a streamed chat answer of a gateway. */
async function chunksOf(client = gateway.client) {
  const stream = await client.chat.completions.create({
    model: 'small',
    messages,
    stream: true,
    stream_options: { include_usage: true },
  });
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

async function lastRecord() {
  return (await askAdmin(gateway, 'GET', '/records?limit=1')).body.data[0];
}

test('usage in the chunk of the last text is the usage of the answer, and has a last chunk of its own', async () => {
  play(frame({ role: 'assistant', content: 'Three' }), frame({ content: '.' }, { usage }, 'stop'), done);
  const chunks = await chunksOf();
  expect(chunks.filter(({ choices }) => choices[0]?.finish_reason === 'stop')).toHaveLength(1);
  expect(chunks.at(-1)).toMatchObject({ choices: [], usage });
  expect(chunks.slice(0, -1).map((chunk) => chunk.usage ?? null)).toEqual(
    chunks.slice(0, -1).map(() => null),
  );
  expect(await lastRecord()).toMatchObject({ usage: { input_tokens: 2_852, output_tokens: 31 } });
});

test('usage that grows in every chunk is counted once, as the last one has it', async () => {
  const growing = Array.from({ length: 31 }, (_, index) =>
    frame(
      { content: 'a ' },
      { usage: { prompt_tokens: 2_852, completion_tokens: index + 1, total_tokens: 2_853 + index } },
    ),
  );
  play(...growing, frame({}, { usage }, 'stop'), done);
  expect((await chunksOf()).at(-1)?.usage).toMatchObject(usage);
  expect(await lastRecord()).toMatchObject({ usage_source: 'upstream', usage: { output_tokens: 31 } });
});

test('two gateways in a row give the same usage, with its reasoning, as one', async () => {
  const second = await startGateway({
    upstreamUrl: `${gateway.url}/v1`,
    upstreams: { local: { url: `${gateway.url}/v1`, apiKey: gateway.key } },
    routes: [{ upstream: 'local', model: 'small' }],
  });
  onTestFinished(() => second.close());
  const detailed = {
    ...usage,
    completion_tokens_details: { reasoning_tokens: 20 },
    prompt_tokens_details: { cached_tokens: 2_048 },
  };
  const frames = [frame({ reasoning: 'One, two' }), frame({ content: 'Three' }), frame({}, {}, 'stop')];
  play(...frames, `data: ${JSON.stringify({ choices: [], usage: detailed })}\n\n`, done);
  const [first, chained] = [(await chunksOf()).at(-1)?.usage, (await chunksOf(second.client)).at(-1)?.usage];
  expect(first).toMatchObject(detailed);
  expect(chained).toEqual(first);
});

test('a stream that is cut after a Responses client got text ends with a failure, never in silence', async () => {
  upstream.play((response) => {
    sendStream(response, [frame({ role: 'assistant', content: 'Thr' })]);
    setImmediate(() => cut(response, 'fin'));
  });
  const kinds: string[] = [];
  const stream = await gateway.client.responses.create({ model: 'small', input: 'How many?', stream: true });
  await (async () => {
    for await (const { type } of stream) kinds.push(type);
  })().catch(() => kinds.push('thrown'));
  expect(kinds.some((kind) => ['response.failed', 'error', 'thrown'].includes(kind))).toBe(true);
  expect(kinds).not.toContain('response.completed');
});

test('an answer that reached its cap is an incomplete response, not an error', async () => {
  play(frame({ content: 'One, two, th' }), frame({}, { usage }, 'length'), done);
  const kinds: string[] = [];
  for await (const { type } of await gateway.client.responses.create({
    model: 'small',
    input: 'How many?',
    stream: true,
    max_output_tokens: 31,
  }))
    kinds.push(type);
  expect(kinds.at(-1)).toBe('response.incomplete');
  expect(await lastRecord()).toMatchObject({ outcome: 'incomplete' });
});

test('a Messages stream that is cut is charged for its text, not for the placeholder of its first event', async () => {
  const event = (type: string, data: object): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`;
  const text = 'word '.repeat(200);
  const script: Script = (response) => {
    sendStream(response, [
      event('message_start', {
        message: {
          id: 'm',
          type: 'message',
          role: 'assistant',
          content: [],
          usage: { input_tokens: 27, output_tokens: 4 },
        },
      }),
      event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
      event('content_block_delta', { index: 0, delta: { type: 'text_delta', text } }),
    ]);
    setImmediate(() => cut(response, 'fin'));
  };
  const messagesGateway = await startGateway({
    upstreams: { local: { url: upstream.url, dialects: ['anthropic'], apiKey: 'x' } },
    routes: [{ upstream: 'local', model: 'claude' }],
    price: { input: '1', output: '2' },
  });
  onTestFinished(() => messagesGateway.close());
  upstream.play(script);
  await expect(chunksOf(messagesGateway.client)).rejects.toThrow(/connection|ended|truncated|upstream/i);
  const [record] = (await askAdmin(messagesGateway, 'GET', '/records?limit=1')).body.data;
  expect(record.usage.output_tokens).toBeGreaterThan(150);
});

test('fields of a provider’s own and nulls beside the text change neither text nor usage', async () => {
  const extras = { native_finish_reason: null, provider: 'X', service_tier: null, obfuscation: 'zzz' };
  play(
    `data: ${JSON.stringify({ id: 'resp_1', object: 'chat.completion.chunk', created: 1, model: 'm', ...extras, choices: [{ index: 0, delta: { role: 'assistant', content: 'Three', reasoning_content: null, tool_calls: null }, finish_reason: null, native_finish_reason: null }] })}\n\n`,
    frame({ role: 'assistant', content: '', tool_calls: null }, { usage: null }, 'stop'),
    `data: ${JSON.stringify({ choices: [], usage, cost: 0.1 })}\n\n`,
    done,
  );
  const chunks = await chunksOf();
  expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toBe('Three');
  expect(chunks.at(-1)?.usage).toMatchObject(usage);
});

test('requests at the same time never spend more than a balance that covers one of them', async () => {
  upstream.play((response) => {
    sendJson(
      response,
      200,
      JSON.stringify({
        choices: [{ index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' }],
        usage,
      }),
    );
  });
  const strict = await startGateway({
    upstreamUrl: upstream.url,
    price: { input: '1', output: '2' },
    limits: { balanceMode: 'strict', concurrency: 20, requestsPerMinute: 1_000 },
  });
  onTestFinished(() => strict.close());
  const { key, secret } = await strict.gateway.createKey('payer', { balanceNanos: 10_000_000 });
  const ask = () =>
    strict.post(
      '/v1/chat/completions',
      { model: 'small', messages, max_tokens: 1_000 },
      { headers: { authorization: `Bearer ${secret}` } },
    );
  const statuses = await Promise.all(Array.from({ length: 20 }, async () => (await ask()).status));
  expect(statuses).toContain(402);
  expect(statuses).toContain(200);
  const { spent, balance } = (await askAdmin(strict, 'GET', `/keys/${key.id}`)).body;
  expect(Number(spent)).toBeLessThanOrEqual(0.01);
  expect(Number(balance)).toBeGreaterThanOrEqual(0);
});

test('a budget of a fraction of a cent counts each request and ends where it is spent', async () => {
  play(
    frame({ content: 'x' }),
    frame({}, { usage: { prompt_tokens: 10, completion_tokens: 1, total_tokens: 11 } }, 'stop'),
    done,
  );
  const { key, secret } = await gateway.gateway.createKey('small budget', {});
  await askAdmin(gateway, 'PATCH', `/keys/${key.id}`, { budget: { amount: '0.0001', per: 'day' } });
  const statuses = [];
  for (let asked = 0; asked < 20; asked++) {
    const response = await gateway.post(
      '/v1/chat/completions',
      { model: 'small', messages, stream: true, max_tokens: 1 },
      { headers: { authorization: `Bearer ${secret}` } },
    );
    await response.text();
    statuses.push(response.status);
  }
  const charged = statuses.filter((status) => status === 200).length;
  expect(statuses.at(-1)).toBe(402);
  expect(Number((await askAdmin(gateway, 'GET', `/keys/${key.id}`)).body.spent)).toBeCloseTo(
    charged * 0.000012,
    9,
  );
});

test('thoughts in a field of vLLM or of DeepSeek are counted, and never part of the text', async () => {
  for (const field of ['reasoning', 'reasoning_content']) {
    play(
      frame({ role: 'assistant', [field]: 'One, two, ' }),
      frame({ content: 'three' }),
      frame({}, {}, 'stop'),
      done,
    );
    const chunks = await chunksOf();
    expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toBe('three');
    expect((await lastRecord()).usage.reasoning_tokens).toBeGreaterThan(0);
  }
});

import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';

/** A real model server to test against, such as llama-server: its base address, ending in `/v1`. */
const llamaUrl = process.env['LLAMA_URL'];

/** What the server itself said, read from its own bytes. */
interface Heard {
  readonly text: string;
  readonly promptTokens: number;
  readonly completionTokens: number;
}

describe.skipIf(llamaUrl === undefined)('through a real model server (set LLAMA_URL to run these)', () => {
  let tap: Awaited<ReturnType<typeof startTap>>;
  let gateway: TestGateway;
  let model: string;
  beforeAll(async () => {
    tap = await startTap(llamaUrl ?? '');
    gateway = await startGateway({
      upstreamUrl: tap.url,
      discover: true,
      limits: { requestsPerMinute: 1_000 },
    });
    model = (await gateway.client.models.list()).data[0]?.id ?? '';
  });
  afterAll(async () => {
    await gateway.close();
    tap.close();
  });

  const rounds = Array.from({ length: 5 }, (_, round) => [round] as const);
  const prompt = (round: number) => `Tell me something, round ${round}: äöü 🌍 "quoted"`;

  test.each(rounds)('chat gives exactly the text and usage of the server, round %i', async (round) => {
    const completion = await gateway.client.chat.completions.create({
      model,
      messages: [{ role: 'user', content: prompt(round) }],
    });
    const heard = tap.lastWhole();
    expect(completion.choices[0]?.message.content).toBe(heard.text);
    expect(completion.usage).toMatchObject({
      prompt_tokens: heard.promptTokens,
      completion_tokens: heard.completionTokens,
    });
  });

  test.each(rounds)(
    'a chat stream gives exactly the text and usage of the server, round %i',
    async (round) => {
      const stream = gateway.client.chat.completions.stream({
        model,
        messages: [{ role: 'user', content: prompt(round) }],
        stream_options: { include_usage: true },
      });
      const completion = await stream.finalChatCompletion();
      const heard = tap.lastStream();
      expect(completion.choices[0]?.message.content).toBe(heard.text);
      expect(completion.usage).toMatchObject({
        prompt_tokens: heard.promptTokens,
        completion_tokens: heard.completionTokens,
      });
    },
  );

  test.each(rounds)('a response gives exactly the text and usage of the server, round %i', async (round) => {
    const response = await gateway.client.responses.create({ model, input: prompt(round) });
    const heard = tap.lastWhole();
    expect(response.output_text).toBe(heard.text);
    expect(response.usage).toMatchObject({
      input_tokens: heard.promptTokens,
      output_tokens: heard.completionTokens,
    });
  });

  test.each(rounds)(
    'a response stream gives exactly the text and usage of the server, round %i',
    async (round) => {
      const response = await gateway.client.responses.stream({ model, input: prompt(round) }).finalResponse();
      const heard = tap.lastStream();
      expect(response.output_text).toBe(heard.text);
      expect(response.usage).toMatchObject({
        input_tokens: heard.promptTokens,
        output_tokens: heard.completionTokens,
      });
    },
  );
});

/** A proxy that keeps the last answer's bytes, so that the truth is known without the gateway. */
async function startTap(target: string) {
  let last = Buffer.alloc(0);
  const server = createServer((incoming, outgoing) => {
    const url = target.replace(/\/v1$/, '') + (incoming.url ?? '');
    const { host: _host, ...headers } = incoming.headers;
    const onward = request(url, { method: incoming.method, headers }, (answer) => {
      last = Buffer.alloc(0);
      answer.on('data', (chunk: Buffer) => (last = Buffer.concat([last, chunk])));
      outgoing.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(outgoing);
    });
    incoming.pipe(onward);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    lastWhole: () => readWhole(last.toString('utf8')),
    lastStream: () => readStream(last.toString('utf8')),
    close: () => server.close(),
  };
}

function readWhole(body: string): Heard {
  const { choices, usage } = JSON.parse(body) as {
    choices: { message: { content: string } }[];
    usage: { prompt_tokens: number; completion_tokens: number };
  };
  return {
    text: choices[0]?.message.content ?? '',
    promptTokens: usage.prompt_tokens,
    completionTokens: usage.completion_tokens,
  };
}

function readStream(body: string): Heard {
  const chunks = body
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => JSON.parse(line.slice(6)) as Record<string, never>);
  const text = chunks
    .map(
      (chunk: { choices?: { delta?: { content?: string | null } }[] }) =>
        chunk.choices?.[0]?.delta?.content ?? '',
    )
    .join('');
  const usage = chunks
    .map((chunk: { usage?: { prompt_tokens: number; completion_tokens: number } | null }) => chunk.usage)
    .findLast((value) => value !== undefined && value !== null);
  return {
    text,
    promptTokens: usage?.prompt_tokens ?? -1,
    completionTokens: usage?.completion_tokens ?? -1,
  };
}

import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readAnswer } from '../support/client-answer.ts';
import { readIndependently } from '../support/independent-reading.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';

/** A real model server to test against, such as llama-server: its base address, ending in `/v1`. */
const llamaUrl = process.env['LLAMA_URL'];

/** The dialects of llama-server, with their paths. */
const paths = {
  chat: '/v1/chat/completions',
  responses: '/v1/responses',
  anthropic: '/v1/messages',
} as const;
const dialects = Object.keys(paths) as (keyof typeof paths)[];
const forms = (['chat', 'responses'] as const).flatMap((client) =>
  [true, false].map((stream) => [client, stream] as const),
);
const rounds = 5;

describe.skipIf(llamaUrl === undefined).each(dialects)(
  'the gateway in front of a real model server with the dialect %s (set LLAMA_URL to run these)',
  (dialect) => {
    let tap: Awaited<ReturnType<typeof startTap>>;
    let gateway: TestGateway;
    let model: string;
    beforeAll(async () => {
      tap = await startTap(llamaUrl ?? '');
      const limits = { requestsPerMinute: 1_000 };
      gateway = await startGateway({ upstreamUrl: tap.url, discover: true, dialect, limits });
      model = (await gateway.client.models.list()).data[0]?.id ?? '';
    });
    afterAll(async () => {
      await gateway.close();
      tap.close();
    });

    test.each(forms)(
      'gives a %s client (streamed: %s) exactly the server’s text, ending and usage',
      async (client, stream) => {
        let said = '';
        for (let round = 0; round < rounds; round++) {
          const question = `Tell me something, round ${round}: äöü 🌍 "quoted"`;
          const answer = await readAnswer(gateway, client, stream, question, model);
          expect(tap.asked.at(-1)).toBe(paths[dialect]);
          expect(answer).toEqual({ ...readIndependently(dialect, tap.last(), stream), code: null });
          said += answer.text;
        }
        expect(said).not.toBe('');
      },
    );

    test('sends the first turn along with the second one', async () => {
      const completion = await gateway.client.chat.completions.create({
        model,
        messages: [
          { role: 'system', content: 'Be terse.' },
          { role: 'user', content: 'Hello' },
          { role: 'assistant', content: 'Yes?' },
          { role: 'user', content: 'Go on' },
        ],
      });
      expect(completion.choices[0]?.finish_reason).toMatch(/stop|length/);
    });
  },
);

/** A proxy that records the bytes of the last answer, for comparison with those of the gateway. */
async function startTap(target: string) {
  let last = Buffer.alloc(0);
  const asked: string[] = [];
  const server = createServer((incoming, outgoing) => {
    asked.push(incoming.url ?? '');
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
    asked,
    last: () => last.toString('utf8'),
    close: () => server.close(),
  };
}

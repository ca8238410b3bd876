import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { createOpenResponses } from '@ai-sdk/open-responses';
import { ChatOpenAI } from '@langchain/openai';
import { streamText } from 'ai';
import type { LanguageModel } from 'ai';
import { OpenAI as OpenAI4 } from 'openai4';
import { afterAll, describe, expect, test } from 'vitest';
import type { ServerResponse } from 'node:http';
import { compareSection } from '../../support/generated-section.ts';
import { chatFrames, cut, sendStream } from '../../support/scripted-upstream.ts';
import { openStage } from '../../support/stage.ts';
import type { TestGateway } from '../../support/test-gateway.ts';

const stages = {
  plain: await openStage({ timeouts: { idle: '250ms', firstByte: '250ms' } }),
  showing: await openStage({
    price: { input: '1', output: '2' },
    compatibility: { usageCost: true, chargeComment: true },
  }),
};
const messages = [{ role: 'user' as const, content: 'count' }];

/** How an SDK reports to its application that an answer is incomplete. */
type Report = 'throws' | 'error part' | 'silence';

/** Consumes a stream to its end, as an application would. `silence` means that the failure was not reported. */
type Client = () => Promise<Report>;

const throwing = async (consume: () => Promise<unknown>): Promise<Report> => {
  try {
    await consume();
    return 'silence';
  } catch {
    return 'throws';
  }
};

const vercel = async (model: LanguageModel): Promise<Report> => {
  const parts: string[] = [];
  const { stream } = streamText({ model, messages, maxRetries: 0, onError: () => {} });
  const report = await throwing(async () => {
    for await (const part of stream) parts.push(part.type);
  });
  return report === 'silence' && parts.includes('error') ? 'error part' : report;
};

interface Provider {
  readonly baseURL: string;
  readonly apiKey: string;
}

const langchain =
  ({ baseURL, apiKey }: Provider, useResponsesApi: boolean): Client =>
  () =>
    throwing(async () => {
      const configuration = { baseURL };
      const model = new ChatOpenAI({
        model: 'small',
        apiKey,
        configuration,
        maxRetries: 0,
        useResponsesApi,
      });
      await Array.fromAsync(await model.stream('count'));
    });

/** The clients of a gateway by their names. */
function clientsOf(gateway: TestGateway): Readonly<Record<string, Client>> {
  const provider = { baseURL: `${gateway.url}/v1`, apiKey: gateway.key };
  const old = new OpenAI4({ ...provider, maxRetries: 0 });
  return {
    'openai chat': () =>
      throwing(async () =>
        Array.fromAsync(
          await gateway.client.chat.completions.create({ model: 'small', messages, stream: true }),
        ),
      ),
    'openai chat helper': () =>
      throwing(() =>
        gateway.client.chat.completions.stream({ model: 'small', messages }).finalChatCompletion(),
      ),
    'openai responses': () =>
      throwing(async () =>
        Array.fromAsync(
          await gateway.client.responses.create({ model: 'small', input: 'count', stream: true }),
        ),
      ),
    'openai responses helper': () =>
      throwing(() => gateway.client.responses.stream({ model: 'small', input: 'count' }).finalResponse()),
    'openai 4 chat': () =>
      throwing(async () =>
        Array.fromAsync(await old.chat.completions.create({ model: 'small', messages, stream: true })),
      ),
    'ai chat': () => vercel(createOpenAI(provider).chat('small')),
    'ai responses': () => vercel(createOpenAI(provider)('small')),
    'ai compatible': () => vercel(createOpenAICompatible({ name: 'textgate', ...provider })('small')),
    'ai open-responses': () =>
      vercel(
        createOpenResponses({ name: 'textgate', url: `${provider.baseURL}/responses`, apiKey: gateway.key })(
          'small',
        ),
      ),
    'LangChain chat': langchain(provider, false),
    'LangChain responses': langchain(provider, true),
  };
}

const clients = clientsOf(stages.plain.gateway);

const [opening = '', one = ''] = chatFrames(['one ']);
const chunk = (choice: object, extra: object = {}) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, ...choice }], ...extra })}\n\n`;
const error = '{"error":{"message":"boom","type":"server_error","param":null,"code":null}}';
const done = 'data: [DONE]\n\n';

/** Sends some frames, then ends the body properly. */
const sendAll =
  (...frames: string[]) =>
  (response: ServerResponse): void =>
    void sendStream(response, frames).end();

/** Sends some frames, and then does something else to the connection. */
const sendThen =
  (frames: readonly string[], next: (response: ServerResponse) => void) =>
  (response: ServerResponse): void => {
    sendStream(response, []).write(frames.join(''), () => next(response));
  };

const faults: Readonly<Record<string, (response: ServerResponse) => void>> = {
  'an error chunk': sendAll(opening, one, `data: ${error}\n\n`, done),
  'an `error` event': sendAll(opening, one, `event: error\ndata: ${error}\n\n`),
  'an `error` event without an envelope': sendAll(opening, one, 'event: error\ndata: {"message":"boom"}\n\n'),
  'an `error:` field (llama.cpp)': sendAll(opening, one, `error: ${error}\n\n`, done),
  'an error and `finish_reason: "error"` (OpenRouter)': sendAll(
    opening,
    one,
    chunk({ delta: { content: '' }, finish_reason: 'error' }, { error: { code: 502, message: 'boom' } }),
    done,
  ),
  'a clean end in the middle': sendAll(opening, one),
  '`[DONE]` without a finish reason': sendAll(opening, one, done),
  'an unknown finish reason': sendAll(opening, one, chunk({ delta: {}, finish_reason: 'vanished' }), done),
  'a cut connection (FIN)': sendThen([opening, one], (response) => cut(response, 'fin')),
  'a cut connection (RST)': sendThen([opening, one], (response) => cut(response, 'rst')),
  silence: sendThen([opening, one], () => {}),
  'broken JSON': sendAll(opening, one, 'data: {"choices":[{"ind\n\n', done),
  'an event of over 1 MiB': sendAll(opening, one, `data: "${'x'.repeat(1_100_000)}"\n\n`, done),
  'a tool call': sendAll(
    opening,
    one,
    chunk({ delta: { tool_calls: [{ index: 0, function: { name: 'f' } }] } }),
    done,
  ),
  'content that is no text': sendAll(opening, one, chunk({ delta: { content: { title: 'x' } } }), done),
  'an error before any text': sendAll(opening, `data: ${error}\n\n`),
  'an empty stream': sendAll(),
  'a web page': (response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('<html>'),
  'status 500': (response) => void response.writeHead(500).end('boom'),
  'no answer at all': () => {},
};

const seen = new Map<string, Report[]>();

describe.each(Object.entries(faults))(
  'an answer that fails because the upstream sends %s',
  (fault, script) => {
    test.each(Object.entries(clients))('is reported as a failure by %s', async (_name, consume) => {
      stages.plain.upstream.play(script);
      const report = await consume();
      seen.set(fault, [...(seen.get(fault) ?? []), report]);
      expect(report).not.toBe('silence');
    });
  },
);

describe('a stream that fails after its charge was said in a comment', () => {
  test.each(Object.entries(clientsOf(stages.showing.gateway)))(
    'is reported as a failure by %s',
    async (_name, consume) => {
      stages.showing.upstream.play(sendThen([opening, one], (response) => cut(response, 'rst')));
      expect(await consume()).not.toBe('silence');
    },
  );
});

describe('the documentation', () => {
  test('lists how each client library reports each fault', () => {
    const names = Object.keys(clients);
    const rows = [...seen].map(([fault, reports]) => `| ${fault} | ${reports.join(' | ')} |`);
    const table = [
      `| the upstream sends | ${names.join(' | ')} |`,
      `|${'---|'.repeat(names.length + 1)}`,
      ...rows,
    ].join('\n');
    const { wanted, found } = compareSection('the table of faults', table);
    expect(found).toBe(wanted);
  });
});

afterAll(() => stages.plain.upstream.play((response) => void response.end()));

import type { ServerResponse } from 'node:http';
import { BadRequestError } from 'openai';
import { afterAll, describe, expect, test } from 'vitest';
import { askAdmin } from '../support/admin-client.ts';
import { readAnswer } from '../support/client-answer.ts';
import { sayTexts, sendJson, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { DialectName } from '../../src/protocol/upstream/dialects.ts';

/** Texts that a provider blocks: the request must never go on to the next provider. */
const first = await startUpstream();
const second = await startUpstream();
second.play(sayTexts(['from the next provider']));

async function openGateway(dialect: DialectName) {
  const entry = { dialects: [dialect] };
  return startGateway({
    upstreams: { first: { url: first.url, ...entry }, second: { url: second.url, ...entry } },
    routes: [
      { upstream: 'first', model: 'a' },
      { upstream: 'second', model: 'b' },
    ],
    limits: { requestsPerMinute: 1_000_000 },
  });
}
const gateways = {
  chat: await openGateway('chat'),
  responses: await openGateway('responses'),
  anthropic: await openGateway('anthropic'),
  gemini: await openGateway('gemini'),
};
afterAll(async () => {
  for (const gateway of Object.values(gateways)) await gateway.close();
  await first.close();
  await second.close();
});

type Dialect = keyof typeof gateways;
const frame = (data: unknown) => `data: ${JSON.stringify(data)}\n\n`;
const candidate = (finishReason: string) => ({ candidates: [{ content: { parts: [] }, finishReason }] });
const blocked = (blockReason: string) => ({ promptFeedback: { blockReason } });
const choice = (finish_reason: string, more: object = {}) => ({
  choices: [{ index: 0, delta: {}, finish_reason, ...more }],
});
const messageEnd = (reason: string) => ({ type: 'message_delta', delta: { stop_reason: reason } });
const incomplete = (reason: string) => ({
  type: 'response.incomplete',
  response: { status: 'incomplete', incomplete_details: { reason }, output: [] },
});

describe('a text that a provider blocks with 200', () => {
  test.each<[Dialect, string, readonly object[]]>([
    ['gemini', 'the finish reason MODEL_ARMOR', [candidate('MODEL_ARMOR')]],
    ['gemini', 'the finish reason IMAGE_SAFETY', [candidate('IMAGE_SAFETY')]],
    ['gemini', 'an unknown finish reason of that kind', [candidate('POLICY_SHIELD_BLOCKED')]],
    ['gemini', 'the block reason MODEL_ARMOR', [blocked('MODEL_ARMOR')]],
    ['gemini', 'the block reason JAILBREAK', [blocked('JAILBREAK')]],
    ['gemini', 'any other block reason', [blocked('SOMETHING_NEW')]],
    ['gemini', 'a block reason beside an empty candidate', [{ ...candidate(''), ...blocked('SAFETY') }]],
    ['gemini', 'a block reason beside another reason', [{ ...candidate('OTHER'), ...blocked('SAFETY') }]],
    ['anthropic', 'a refusal', [messageEnd('refusal'), { type: 'message_stop' }]],
    ['anthropic', 'an unknown reason', [messageEnd('safety_block'), { type: 'message_stop' }]],
    ['responses', 'content_filter', [incomplete('content_filter')]],
    ['responses', 'an unknown reason', [incomplete('guardrail')]],
    ['responses', 'a status', [{ type: 'response.completed', response: { status: 'blocked', output: [] } }]],
    ['chat', 'a guardrail of Bedrock', [choice('guardrail_intervened')]],
    ['chat', 'a guardrail of Databricks', [choice('input_guardrail_triggered')]],
    ['chat', 'the native reason of OpenRouter', [choice('error', { native_finish_reason: 'MODEL_ARMOR' })]],
    [
      'chat',
      'a native reason beside an error',
      [{ ...choice('error', { native_finish_reason: 'SAFETY' }), error: { code: 502, message: 'x' } }],
    ],
  ])(
    'by %s, with %s, ends as content_filter, and goes to no other provider',
    async (dialect, _how, frames) => {
      first.play((response) => void sendStream(response, frames.map(frame)).end());
      for (const protocol of ['chat', 'responses'] as const) {
        for (const stream of [true, false]) {
          const answer = await readAnswer(gateways[dialect], protocol, stream);
          expect(answer).toMatchObject({ ending: 'content_filter', text: '' });
        }
      }
      expect(second.seen).toEqual([]);
    },
  );
});

describe('a text that a provider refuses with an error', () => {
  const azure = {
    error: {
      message:
        "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
      type: null,
      param: 'prompt',
      code: 'content_filter',
      status: 400,
      innererror: { code: 'ResponsibleAIPolicyViolation' },
    },
  };
  const anthropic = { type: 'invalid_request_error', message: 'Output blocked by content filtering policy' };
  const flagged = {
    error: {
      message: 'Your chosen model requires moderation and your input was flagged',
      code: 403,
      metadata: { reasons: ['x'], flagged_input: 'My bank account was suspended, and I was banned.' },
    },
  };
  const warning =
    'Your prompt was flagged as potentially violating our usage policy. Repeated requests may result in your account being banned.';
  const status =
    (code: number, body: object) =>
    (response: ServerResponse): void =>
      sendJson(response, code, JSON.stringify(body));
  const stream =
    (body: object) =>
    (response: ServerResponse): void =>
      void sendStream(response, [`event: error\n${frame(body)}`]).end();

  test.each<[Dialect, string, (response: ServerResponse) => void]>([
    ['chat', 'Azure, 400', status(400, azure)],
    ['responses', 'Azure, 400', status(400, azure)],
    ['chat', 'OpenRouter, 403', status(403, { error: { code: 403, metadata: { flagged_input: '…' } } })],
    ['chat', 'OpenRouter, 403, quoting the text', status(403, flagged)],
    ['chat', 'OpenRouter, in an answer', (response) => sendJson(response, 200, JSON.stringify(flagged))],
    ['chat', 'OpenRouter, in a stream', stream(flagged)],
    ['chat', 'OpenAI, 403 with a warning', status(403, { error: { message: warning } })],
    ['chat', 'a code of Gemini, 500', status(500, { error: { status: 'PROHIBITED_CONTENT' } })],
    ['chat', 'a code of Gemini, in a stream', stream({ error: { code: 'SAFETY' } })],
    ['chat', 'a guardrail, 403', status(403, { error: { code: 'guardrail_intervened' } })],
    ['chat', 'a legal reason, 451', status(451, { error: { code: 'content_filter' } })],
    ['responses', 'OpenAI, in its stream', stream({ type: 'error', code: 'invalid_prompt', message: 'x' })],
    ['chat', 'DeepSeek, 400', status(400, { error: { message: 'Content Exists Risk', code: 'x' } })],
    ['chat', 'Alibaba, 400', status(400, { error: { code: 'data_inspection_failed' } })],
    ['chat', 'an error in a stream', stream({ error: { code: 'content_policy_violation' } })],
    ['anthropic', 'Anthropic, 400', status(400, { type: 'error', error: anthropic })],
    ['anthropic', 'Anthropic, in its stream', stream({ type: 'error', error: anthropic })],
  ])(
    'by %s (%s) gets a 400 with the code content_filter, and goes to no other provider',
    async (dialect, _how, play) => {
      first.play(play);
      const { client } = gateways[dialect];
      const asked = client.chat.completions.create({
        model: 'small',
        stream: true,
        messages: [{ role: 'user', content: 'x' }],
      });
      const error = await asked.then(
        () => null,
        (thrown: unknown) => thrown,
      );
      expect(error).toBeInstanceOf(BadRequestError);
      expect(error).toMatchObject({ status: 400, code: 'content_filter', type: 'invalid_request_error' });
      expect(second.seen).toEqual([]);
      const { body } = await askAdmin(gateways[dialect], 'GET', '/records?limit=1');
      expect(body.data[0]).toMatchObject({ outcome: 'upstream_failed', charge: '0.00', status: 400 });
    },
  );

  test('is not confused with a 403 for the operator’s own key', async () => {
    first.play(status(403, { error: { message: 'The key lacks a permission.' } }));
    second.seen.length = 0;
    await readAnswer(gateways.chat, 'chat', true);
    expect(second.seen).toHaveLength(1);
    second.seen.length = 0;
  });
});

describe('a request that its provider quotes in an error', () => {
  const question = 'Tell me what is content_filter';
  const near = JSON.stringify({ error: { code: 'server_error', message: `failed at "${question}"` } });

  test.each([200, 403, 500])('goes to the next provider, as the %i demands', async (status) => {
    first.play((response) => sendJson(response, status, near));
    second.seen.length = 0;
    const answer = await readAnswer(gateways.chat, 'chat', false, question);
    expect(answer).toMatchObject({ ending: 'stop', text: 'from the next provider' });
    expect(second.seen).toHaveLength(1);
    second.seen.length = 0;
  });
});

describe('an error that only the words of its message explain', () => {
  const message = (text: string) => JSON.stringify({ error: { message: text } });
  const opened: { close(): Promise<void> }[] = [];
  afterAll(async () => {
    for (const gateway of opened) await gateway.close();
  });

  test.each([
    [
      'a text that is refused inside an answer',
      200,
      message('We find that this violates our usage policy.'),
      'unknown',
    ],
    ['the same with a code', 200, JSON.stringify({ error: { code: 'content_filter' } }), 'ok'],
    ['a text that is too long inside an answer', 200, message('over the context window'), 'unknown'],
    ['an account without credit', 400, message('Sorry: the credit balance is too low.'), 'unknown'],
    ['the same in the words of the provider', 400, message('Your credit balance is too low.'), 'failing'],
  ])('says nothing of the upstream’s health: %s', async (_name, status, body, state) => {
    first.play((response) => sendJson(response, status, body));
    const gateway = await startGateway({ upstreamUrl: first.url });
    opened.push(gateway);
    for (let asked = 0; asked < 6; asked++) await readAnswer(gateway, 'chat', false);
    const ready = await fetch(`${gateway.adminUrl}/readyz`);
    expect(await ready.json()).toMatchObject({ upstreams: { local: { state } } });
  });
});

import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { openRaw } from '../support/raw-socket.ts';
import { sayTexts } from '../support/scripted-upstream.ts';
import { openStage } from '../support/stage.ts';

const { upstream, gateway } = await openStage({ limits: { concurrency: 1_000 } });
upstream.play(sayTexts(['héllo']));

const authorization = `Authorization: Bearer ${gateway.key}\r\n`;
const chat = JSON.stringify({ model: 'small', messages: [{ role: 'user', content: 'x' }] });
const responses = JSON.stringify({ model: 'small', input: 'x' });
const streamed = JSON.stringify({ ...(JSON.parse(chat) as object), stream: true });

/** Ids and times, which differ between two answers to one request. */
const volatile =
  /\b(req|chatcmpl|resp|msg)_?-?[0-9a-zA-Z_-]{20,}|Date: [^\r]+|"(created|created_at|completed_at)":\d+|(?<=reset-requests: )\S+|(?<=remaining-requests: )\d+/g;

/** The bytes of the answer to one request on a connection of its own. */
async function ask(request: string): Promise<string> {
  const client = openRaw(gateway.url);
  client.socket.write(Buffer.from(request));
  await eventually('the answer is whole', () => client.isClosed());
  return client.text().replace(volatile, '#');
}

const head = (method: string, target: string, headers: string): string =>
  `${method} ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${headers}`;
const withBody = (target: string, headers: string, body: string, type = 'application/json'): string =>
  head(
    'POST',
    target,
    `${headers}Content-Type: ${type}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );

// The router answers a target with a query, which no route reads, and our own listener one without.
test.each<[string, (query: string) => string]>([
  ['an answer', (query) => withBody(`/v1/chat/completions${query}`, authorization, chat)],
  ['a stream', (query) => withBody(`/v1/chat/completions${query}`, authorization, streamed)],
  ['a response', (query) => withBody(`/v1/responses${query}`, authorization, responses)],
  ['the models', (query) => head('GET', `/v1/models${query}`, `${authorization}\r\n`)],
  ['the head of the models', (query) => head('HEAD', `/v1/models${query}`, `${authorization}\r\n`)],
  [
    'an unknown key',
    (query) => withBody(`/v1/chat/completions${query}`, 'Authorization: Bearer x\r\n', chat),
  ],
  ['no key, but one elsewhere', (query) => withBody(`/v1/responses${query}`, 'X-Api-Key: x\r\n', responses)],
  [
    'two keys',
    (query) => withBody(`/v1/chat/completions${query}`, authorization + authorization.toUpperCase(), chat),
  ],
  ['broken JSON', (query) => withBody(`/v1/chat/completions${query}`, authorization, '{')],
  ['no body', (query) => withBody(`/v1/chat/completions${query}`, authorization, '')],
  ['another type', (query) => withBody(`/v1/chat/completions${query}`, authorization, chat, 'text/plain')],
  ['another method', (query) => head('DELETE', `/v1/chat/completions${query}`, `${authorization}\r\n`)],
  ['GET for a text', (query) => head('GET', `/v1/responses${query}`, `${authorization}\r\n`)],
])('a request gets the same bytes with the router and without it: %s', async (_, request) => {
  const direct = await ask(request(''));
  expect(direct).toMatch(/^HTTP\/1\.1 \d{3} /);
  expect(direct).toContain('x-request-id: #\r\nx-content-type-options: nosniff\r\ncontent-type: ');
  expect(direct).toBe(await ask(request('?api-version=1')));
});

test('an answer’s head begins with the headers that all answers have, then its own, then those of HTTP', async () => {
  const text = await ask(withBody('/v1/chat/completions', authorization, chat));
  const names = text
    .slice(0, text.indexOf('\r\n\r\n'))
    .split('\r\n')
    .slice(1)
    .map((line) => (line === '#' ? 'Date' : line.split(':', 1)[0]));
  expect(names).toEqual([
    'x-request-id',
    'x-content-type-options',
    'content-type',
    'cache-control',
    'x-ratelimit-limit-requests',
    'x-ratelimit-remaining-requests',
    'x-ratelimit-reset-requests',
    'x-textgate-concurrency-limit',
    'x-textgate-concurrency-in-flight',
    'x-textgate-charge',
    'content-length',
    'Date',
    'Connection',
  ]);
});

test('a body that arrived in many pieces before it was read is read whole', async () => {
  const long = JSON.stringify({ model: 'small', messages: [{ role: 'user', content: 'y'.repeat(200_000) }] });
  expect(await ask(withBody('/v1/chat/completions', authorization, long))).toMatch(/^HTTP\/1\.1 200 /);
  expect(upstream.seen.at(-1)?.body.includes('y'.repeat(200_000))).toBe(true);
});

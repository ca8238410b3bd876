import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { askAdmin } from '../support/admin-client.ts';
import { findCanaries, plant } from '../support/canaries.ts';
import { fetchConsoleModules } from '../support/console-modules.ts';
import { eventually } from '../support/eventually.ts';
import { readLive } from '../support/live-answer.ts';
import { chatFrames, sayTexts, sendJson, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';

const readOnlyToken = 'a-read-only-token-for-tests';
const markup = '<script>alert(1)</script>';
const prompt = 'canary-of-the-prompt';
const answer = 'canary-of-the-answer';
plant(prompt, answer);

/** What an operator can ask for, by the description of the API. */
const { paths } = JSON.parse(
  readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'openapi.json'), 'utf8'),
) as { readonly paths: Readonly<Record<string, { readonly get?: object }>> };
const targets = Object.entries(paths).flatMap(([path, methods]) =>
  methods.get !== undefined && path.startsWith('/admin/') ? [path] : [],
);

/** Answers that are files, not JSON. */
const files = new Set(['/admin/backup', '/admin/archive']);

let upstream: ScriptedUpstream;
let gateway: TestGateway;
let keyId = '';
let requestId = '';
const ended: Promise<void>[] = [];

/** Sends a request with secret words, with the key or another one. */
function ask(extra: object = {}, secret = gateway.key): Promise<Response> {
  const body = { model: 'small', messages: [{ role: 'user', content: prompt }], ...extra };
  return gateway.post('/v1/chat/completions', body, {
    headers: { authorization: `Bearer ${secret}`, 'x-note': prompt },
  });
}

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startGateway({
    admin: { readOnlyToken },
    upstreams: { [markup]: { url: upstream.url, apiKey: 'sk-upstream-secret-of-markup' } },
    routes: [{ upstream: markup, model: markup }],
    groups: { lab: { concurrency: 2 } },
    price: { input: '1', output: '2' },
    limits: { requestsPerMinute: 1_000_000, concurrency: 1, queueWait: '60s' },
  });
  const { key, secret } = await gateway.gateway.createKey(markup, { group: 'lab' });
  keyId = key.id;
  upstream.play(sayTexts([answer, ' more']));
  for (const stream of [true, false]) await (await ask({ stream }, secret)).text();
  const said = `${markup} "${prompt}" is bad: Incorrect API key provided: sk-upstream-secret-of-markup`;
  for (const status of [400, 401, 500]) {
    const body = JSON.stringify({ error: { message: said, code: markup, type: markup } });
    upstream.play((response) => sendJson(response, status, body));
    await (await ask({}, secret)).text();
  }
  upstream.play((response) => void sendStream(response, chatFrames([answer]).slice(0, 2)));
  // One is stuck and one waits, so that the lists of what runs have something to show.
  for (let count = 0; count < 2; count++) ended.push(readLive(ask({ stream: true }, secret)).ended);
  await eventually('one waits', async () => {
    const { body } = await askAdmin(gateway, 'GET', '/status');
    return body.in_flight.waiting === 1;
  });
  ({
    body: {
      data: [{ request_id: requestId }],
    },
  } = await askAdmin(gateway, 'GET', '/records?limit=1'));
});
afterAll(async () => {
  await upstream.close();
  await Promise.all(ended);
  await gateway.close();
});

/** A path with the ids of this gateway in the places of its parameters. */
function filled(path: string): string {
  const target = path.replace('{id}', keyId).replace('{request_id}', requestId);
  if (target.includes('{')) throw new Error(`no value for ${path}`);
  return target === '/admin/try/models' ? `${target}?key=${keyId}` : target;
}

function get(target: string, token: string, headers: Readonly<Record<string, string>> = {}) {
  return fetch(gateway.adminUrl + target, { headers: { authorization: `Bearer ${token}`, ...headers } });
}

describe('what operators are shown', () => {
  test('is found in the description of the API', () => {
    expect(targets.length).toBeGreaterThan(10);
  });

  test.for(targets)('has no secret, prompt or answer of a request: GET %s', async (path) => {
    for (const token of [gateway.adminToken, readOnlyToken]) {
      const response = await get(filled(path), token);
      const body = Buffer.from(await response.arrayBuffer());
      expect(() => findCanaries({ [path]: body })).not.toThrow();
    }
  });

  test.for(targets.filter((path) => !files.has(path)))(
    'is JSON that no browser takes for a page: GET %s',
    async (path) => {
      // A statement is lines of JSON, each with its signature.
      const type = path.endsWith('/statement') ? /^text\/plain\b/ : /^application\/json\b/;
      for (const accept of ['application/json', 'text/html']) {
        const { status, headers } = await get(filled(path), gateway.adminToken, { accept });
        expect([status, headers.get('x-content-type-options')]).toEqual([200, 'nosniff']);
        expect(headers.get('content-type')).toMatch(type);
      }
    },
  );

  test.for([
    ['/admin/keys', 'the name of a key'],
    ['/admin/records', 'the words of a provider, and names of models and upstreams'],
    ['/admin/records/{request_id}', 'the same of one request'],
    ['/admin/usage?by=key,model,upstream', 'names in sums'],
    ['/admin/status', 'names of what runs'],
    ['/admin/upstreams', 'names of upstreams and their models'],
  ] as const)('has markup as data, and unchanged: %s has %s', async ([path]) => {
    const { body } = await askAdmin(gateway, 'GET', filled(path).slice('/admin'.length));
    expect(textsOf(body).filter((text) => text.includes('<script>'))).not.toEqual([]);
  });

  test.for([
    `/admin/keys/${markup}`,
    `/admin/keys/${encodeURIComponent(markup)}`,
    `/admin/records?key=${encodeURIComponent(markup)}`,
    `/admin/usage?by=${encodeURIComponent(markup)}`,
    `/admin/${encodeURIComponent(markup)}`,
    `/console/${encodeURIComponent(markup)}`,
    `/${encodeURIComponent(markup)}`,
  ])('has markup of the request itself as data: GET %s', async (target) => {
    const response = await get(target, gateway.adminToken, { accept: 'text/html' });
    expect(response.headers.get('content-type')).toMatch(/^application\/json\b/);
    expect(response.headers.get('x-content-type-options')).toBe('nosniff');
    await response.json();
  });

  test('keeps markup out of the names that have a form: those of groups, and tags', async () => {
    for (const settings of [{ group: markup }, { tags: [markup] }]) {
      const { status, headers } = await askAdmin(gateway, 'POST', '/keys', { name: 'x', ...settings });
      expect([status, headers.get('content-type')]).toEqual([
        400,
        expect.stringMatching(/^application\/json\b/) as string,
      ]);
    }
    await expect(startGateway({ groups: { [markup]: {} } })).rejects.toThrow(/group/);
  });

  test('has no secret in the stream of the status, nor in the files of the console', async () => {
    const leaving = new AbortController();
    const response = await fetch(`${gateway.adminUrl}/admin/status`, {
      headers: { authorization: `Bearer ${readOnlyToken}`, accept: 'text/event-stream' },
      signal: leaving.signal,
    });
    const { value = new Uint8Array() } = (await response.body?.getReader().read()) ?? {};
    leaving.abort();
    const event = Buffer.from(value);
    expect(event.toString()).toContain('event: status');
    const modules = await fetchConsoleModules(gateway.adminUrl);
    const page = await (await fetch(`${gateway.adminUrl}/console/`)).text();
    const found = { event, page, modules: [...modules.values()].join('\n') };
    expect(() => findCanaries(found)).not.toThrow();
  });
});

/** All texts of a JSON value, its names included. */
function textsOf(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, part]) => [name].concat(textsOf(part)));
}

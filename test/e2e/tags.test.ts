import { request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:http';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { askAdmin } from '../support/admin-client.ts';
import { sayTexts, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';

const body = { model: 'small', messages: [{ role: 'user', content: 'x' }] };
const tags = ['search', 'chat:2'];

let upstream: ScriptedUpstream;
let gateway: TestGateway;
let tagged: { readonly id: string; readonly secret: string };
let log = '';
beforeAll(async () => {
  upstream = await startUpstream();
  upstream.play(sayTexts(['Hello']));
  gateway = await startGateway({
    upstreamUrl: upstream.url,
    passthrough: [{ path: '/tokenize', upstream: 'local', free: true }],
    logDestination: { write: (line: string) => void (log += line) },
  });
  const { key, secret } = await gateway.gateway.createKey('tagged', { tags, requestsPerMinute: 1_000 });
  tagged = { id: key.id, secret };
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

const admin = (method: string, path: string, sent?: object) => askAdmin(gateway, method, path, sent);

/** Sends a request with the key that has tags. */
async function send(path: string, sent: object, tag: string | null, secret = tagged.secret) {
  const headers = { authorization: `Bearer ${secret}`, ...(tag === null ? {} : { 'x-textgate-tag': tag }) };
  const answer = await gateway.post(path, sent, { headers });
  const id = answer.headers.get('x-request-id') ?? '';
  const text = await answer.text();
  const read = answer.status === 200 ? null : JSON.parse(text);
  return { status: answer.status, id, error: read?.error, headers: answer.headers };
}

/** The fields of the log line of a request. */
function lineOf(id: string): Record<string, unknown> {
  const found = log.split('\n').find((line) => line.includes('"msg":"request"') && line.includes(id));
  return JSON.parse(found ?? '{}') as Record<string, unknown>;
}

describe('the tag of a request', () => {
  test.each([
    ['/v1/chat/completions', body],
    ['/v1/chat/completions', { ...body, stream: true }],
    ['/v1/responses', { model: 'small', input: 'x' }],
    ['/v1/responses', { model: 'small', input: 'x', stream: true }],
    ['/tokenize', { text: 'x' }],
  ])('of %s is in its record, its receipt and the log, and not sent to the upstream', async (path, sent) => {
    const { status, id } = await send(path, sent, 'chat:2');
    expect(status).toBe(200);
    await gateway.recorded();
    expect((await admin('GET', `/records/${id}`)).body).toMatchObject({ tag: 'chat:2' });
    const headers = { authorization: `Bearer ${tagged.secret}` };
    const receipt = await fetch(`${gateway.url}/v1/key/requests/${id}`, { headers });
    expect(await receipt.json()).toMatchObject({ tag: 'chat:2' });
    expect(lineOf(id)).toMatchObject({ requestId: id, tag: 'chat:2' });
    const received = upstream.seen.at(-1);
    expect(JSON.stringify([received?.headers, received?.body])).not.toMatch(/chat:2|textgate-tag/);
  });

  test('is in the CSV of records, and in no metric', async () => {
    const csv = await askAdmin(gateway, 'GET', `/records?key=${tagged.id}&limit=1`, undefined, {
      accept: 'text/csv',
    });
    const [header = '', line = ''] = csv.text.split('\r\n');
    expect(line.split(',')[header.split(',').indexOf('tag')]).toBe('chat:2');
    expect(await (await fetch(`${gateway.adminUrl}/metrics`)).text()).not.toContain('chat:2');
  });

  test('may be left out', async () => {
    const { status, id } = await send('/v1/chat/completions', body, null);
    expect(status).toBe(200);
    await gateway.recorded();
    expect((await admin('GET', `/records/${id}`)).body).toMatchObject({ tag: null });
    expect(lineOf(id)).not.toHaveProperty('tag');
  });

  test('is sent by the default headers of the client library', async () => {
    const defaultHeaders = { 'x-textgate-tag': 'search' };
    const client = new OpenAI({
      baseURL: `${gateway.url}/v1`,
      apiKey: tagged.secret,
      maxRetries: 0,
      defaultHeaders,
    });
    const { request_id: id } = await client.responses.create({ model: 'small', input: 'x' }).withResponse();
    await gateway.recorded();
    expect((await admin('GET', `/records/${id}`)).body).toMatchObject({ tag: 'search' });
  });
});

describe('a tag that the key does not have', () => {
  test.each([
    'Search',
    'search ,chat:2',
    'search, chat:2',
    'searc',
    '',
    'chát',
    'search\tx',
    '__proto__',
    'x'.repeat(5_000),
  ])('is refused with the list of its tags, and leaves no trace: %j', async (tag) => {
    const before = upstream.seen.length;
    const { status, error, id, headers } = await send('/v1/chat/completions', body, tag);
    expect(status).toBe(400);
    expect(error).toMatchObject({
      code: 'tag_not_allowed',
      param: 'x-textgate-tag',
      type: 'invalid_request_error',
    });
    expect(error.message).toContain('search, chat:2');
    expect(error.message).not.toMatch(/xx|chát|__proto__/);
    expect(upstream.seen).toHaveLength(before);
    await gateway.recorded();
    expect((await admin('GET', `/records/${id}`)).status).toBe(404);
    expect(lineOf(id)).toMatchObject({ code: 'tag_not_allowed' });
    expect(lineOf(id)).not.toHaveProperty('tag');
    expect(headers.get('x-ratelimit-remaining-requests')).toBeNull();
  });

  test('is refused when it is sent twice, whatever the values', async () => {
    for (const values of [
      ['search', 'search'],
      ['search', 'chat:2'],
    ])
      expect(await sendRaw(values)).toBe(400);
    expect(await sendRaw(['search'])).toBe(200);
  });

  test('is refused for a passthrough path, before anything is forwarded', async () => {
    const before = upstream.seen.length;
    expect((await send('/tokenize', { text: 'x' }, 'other')).error).toMatchObject({
      code: 'tag_not_allowed',
    });
    expect(upstream.seen).toHaveLength(before);
  });

  test('is refused with how to allow it where the key has no tags', async () => {
    const { status, error } = await send('/v1/chat/completions', body, 'search', gateway.key);
    expect(status).toBe(400);
    expect(error.code).toBe('tag_not_allowed');
    expect(error.message).toContain('ask the operator to give the key a list of tags');
  });

  test('takes no slot and no start, so that the next request is served', async () => {
    const { secret } = await gateway.gateway.createKey('narrow', {
      tags: ['a'],
      requestsPerMinute: 1,
      concurrency: 1,
    });
    for (let time = 0; time < 3; time++)
      expect((await send('/v1/chat/completions', body, 'b', secret)).status).toBe(400);
    expect((await send('/v1/chat/completions', body, 'a', secret)).status).toBe(200);
  });

  /** Sends a request with a header for each of these values. */
  function sendRaw(values: readonly string[]): Promise<number | undefined> {
    return new Promise((resolve, reject) => {
      const headers = {
        authorization: `Bearer ${tagged.secret}`,
        'content-type': 'application/json',
        'x-textgate-tag': [...values],
      };
      httpRequest(`${gateway.url}/v1/chat/completions`, { method: 'POST', headers }, (answer) => {
        answer.resume();
        answer.on('end', () => resolve(answer.statusCode));
      })
        .on('error', reject)
        .end(JSON.stringify(body));
    });
  }
});

describe('the tags of a key', () => {
  test('are set, shown to its holder, changed and removed; the next request counts', async () => {
    const made = (await admin('POST', '/keys', { name: 'changing', tags: ['a', 'b', 'a'] })).body;
    expect(made).toMatchObject({ tags: ['a', 'b'] });
    const { id, key: secret } = made as { id: string; key: string };
    const own = await fetch(`${gateway.url}/v1/key`, { headers: { authorization: `Bearer ${secret}` } });
    expect(await own.json()).toMatchObject({ tags: ['a', 'b'] });
    expect((await send('/v1/chat/completions', body, 'a', secret)).status).toBe(200);
    expect((await admin('PATCH', `/keys/${id}`, { tags: ['c'] })).body).toMatchObject({ tags: ['c'] });
    expect((await send('/v1/chat/completions', body, 'a', secret)).status).toBe(400);
    expect((await send('/v1/chat/completions', body, 'c', secret)).status).toBe(200);
    expect((await admin('PATCH', `/keys/${id}`, { name: 'same tags' })).body).toMatchObject({ tags: ['c'] });
    for (const none of [[], null]) {
      await admin('PATCH', `/keys/${id}`, { tags: ['c'] });
      expect((await admin('PATCH', `/keys/${id}`, { tags: none })).body).toMatchObject({ tags: [] });
    }
    expect((await send('/v1/chat/completions', body, 'c', secret)).status).toBe(400);
  });

  test.each([
    [['a b']],
    [['a,b']],
    [['']],
    [['-a']],
    [['é']],
    [['a\nb']],
    [['x'.repeat(65)]],
    ['a'],
    [[1]],
    [Array.from({ length: 33 }, (_, at) => `t${at}`)],
  ])('are refused in another form: %j', async (wrong) => {
    const { status, body: answer } = await admin('POST', '/keys', { name: 'x', tags: wrong });
    expect(status).toBe(400);
    expect(answer.error.param).toMatch(/^tags/);
  });

  test('are declared in the config, and change with it', async () => {
    const secret = 'kD83hs02Lq9sPz71mXw4';
    const declare = (list: readonly string[]) => ({
      server: { port: 0 },
      admin: { port: 0 },
      storage: { url: 'sqlite::memory:' },
      keys: { bob: { key: secret, tags: [...list] } },
      upstreams: { local: { url: upstream.url } },
      models: { small: { routes: [{ upstream: 'local', model: 'tiny' }], free: true as const } },
    });
    const { createGateway } = await import('../../src/index.ts');
    const declared = createGateway(declare(['a']), { logLevel: 'silent' });
    const { url } = await declared.listen();
    const statusOf = async (tag: string) => {
      const headers = {
        authorization: `Bearer ${secret}`,
        'content-type': 'application/json',
        'x-textgate-tag': tag,
      };
      const answer = await fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers,
        body: JSON.stringify(body),
      });
      await answer.text();
      return answer.status;
    };
    expect([await statusOf('a'), await statusOf('b')]).toEqual([200, 400]);
    declared.reload(declare(['b']));
    expect([await statusOf('a'), await statusOf('b')]).toEqual([400, 200]);
    await declared.close();
  });

  test('hold for requests through a router in another app', async () => {
    const server = createServer((request, response) => gateway.gateway.router(request, response));
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const statusOf = async (tag: string) => {
      const headers = {
        authorization: `Bearer ${tagged.secret}`,
        'content-type': 'application/json',
        'x-textgate-tag': tag,
      };
      const answer = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
        method: 'POST',
        headers,
        body: JSON.stringify(body),
      });
      await answer.text();
      return answer.status;
    };
    expect([await statusOf('search'), await statusOf('other')]).toEqual([200, 400]);
    server.closeAllConnections();
    server.close();
  });
});

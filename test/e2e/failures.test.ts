import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { askAdmin } from '../support/admin-client.ts';
import { eventually } from '../support/eventually.ts';
import { sayTexts, sendJson, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';

const hostile = '<img src=x onerror=alert(1)>\u202etxt.exe';

describe('the failures of some time', () => {
  let upstream: ScriptedUpstream;
  let gateway: TestGateway;
  const ids: string[] = [];
  const statuses: number[] = [];

  const ask = async (secret = gateway.key): Promise<number> => {
    const body = { model: 'small', messages: [{ role: 'user', content: 'x' }] };
    const headers = { authorization: `Bearer ${secret}` };
    const answer = await gateway.post('/v1/chat/completions', body, { headers });
    await answer.text();
    ids.push(answer.headers.get('x-request-id') ?? '');
    return answer.status;
  };

  beforeAll(async () => {
    upstream = await startUpstream();
    gateway = await startGateway({
      upstreams: { closed: { url: 'http://127.0.0.1:1/v1' }, local: { url: upstream.url } },
      routes: [
        { upstream: 'closed', model: 'a' },
        { upstream: 'local', model: 'b' },
      ],
    });
    const { secret } = await gateway.gateway.createKey('slow', { requestsPerMinute: 1 });
    upstream.play(sayTexts(['x']));
    for (const each of [gateway.key, secret, secret]) statuses.push(await ask(each));
    upstream.play((response) =>
      sendJson(response, 500, JSON.stringify({ error: { message: hostile, code: 'broken' } })),
    );
    statuses.push(await ask());
    await gateway.recorded();
  });
  afterAll(async () => {
    await gateway.close();
    await upstream.close();
  });

  const read = async (query = '') => (await askAdmin(gateway, 'GET', `/failures${query}`)).body;

  test('are grouped by cause, with the remedy, the words, the times, the keys and the outcomes for clients', async () => {
    expect(statuses).toEqual([200, 200, 429, 502]);
    const report = await read();
    expect(report).toMatchObject({ is_complete: true, records: 3, other: { groups: 0, requests: 0 } });
    const [unreachable, broken, ...others] = report.data;
    expect(others).toEqual([]);
    expect(unreachable).toMatchObject({
      cause: expect.stringMatching(
        /^POST http:\/\/127\.0\.0\.1:1\/v1\/chat\/completions: connection refused$/,
      ),
      remedy: expect.stringMatching(/^Start the server, or correct the host and port of /),
      result: 'unreachable',
      upstream: 'closed',
      model: 'small',
      status: null,
      words: null,
      requests: 3,
      keys: 2,
      outcomes: { completed: 2, upstream_failed: 1 },
      request_id: ids[3],
    });
    expect(broken).toMatchObject({
      cause: expect.stringMatching(/: the server failed \(status 500\)$/),
      result: 'error',
      upstream: 'local',
      status: 500,
      code: 'broken',
      words: expect.stringContaining('<img src=x onerror=alert(1)>'),
      requests: 1,
      calls: 1,
      keys: 1,
      outcomes: { upstream_failed: 1 },
    });
    expect(Date.parse(unreachable.first_at)).toBeLessThanOrEqual(Date.parse(unreachable.last_at));
    const found = await askAdmin(gateway, 'GET', `/records?cause=${encodeURIComponent(unreachable.cause)}`);
    expect(found.body.data).toHaveLength(3);
  });

  test('are those that filters want', async () => {
    const causesOf = async (query: string) =>
      (await read(query)).data.map(({ upstream: at }: { upstream: string }) => at);
    expect(await causesOf('?outcome=completed')).toEqual(['closed']);
    expect(await causesOf('?cause=broken')).toEqual(['closed', 'local']);
    expect(await causesOf('?from=2020-01-01&to=2020-01-02')).toEqual([]);
    expect(await causesOf(`?model=${encodeURIComponent(hostile)}`)).toEqual([]);
  });

  test('stand beside what limits refused on the days of that time, by limit and by key', async () => {
    await eventually('the refusal is counted', async () => (await read()).refusals.by_limit.length > 0);
    const { refusals } = await read();
    expect(refusals.by_limit).toEqual([{ limit: 'rate', requests: 1, keys: 1 }]);
    expect(refusals.by_key).toMatchObject([{ key_name: 'slow', limit: 'rate', requests: 1 }]);
    expect((await read('?model=small')).refusals).toBeNull();
  });

  test.for([
    ['from=2030-01-02&to=2030-01-01', /^Invalid 'to': expected a time after 'from'\.$/],
    ['from=2999-01-01', /^Invalid 'to'/],
    ['outcome=failed', /^Invalid 'outcome': expected one of completed, /],
    ['limit=5', /^Unknown parameter: 'limit'\./],
  ] as const)('are refused for a wrong query: %s', async ([query, message]) => {
    const { status, body } = await askAdmin(gateway, 'GET', `/failures?${query}`);
    expect(status).toBe(400);
    expect(body.error.message).toMatch(message);
  });
});

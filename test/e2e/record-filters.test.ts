import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { PresentedRecord } from '../../src/http/present/record.ts';
import { askAdmin } from '../support/admin-client.ts';
import { runCommand } from '../support/run-command.ts';
import { sayTexts, sendJson, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';

/** A name that a page or a terminal would show otherwise than it is, where it were not escaped. */
const hostile = '<img src=x onerror=alert(1)>\u202etxt.exe';

const words = 'The server is busy: 100% of "slots_" are taken';

describe('records are chosen by', () => {
  let upstream: ScriptedUpstream;
  let other: ScriptedUpstream;
  let gateway: TestGateway;
  const ids: Record<'answered' | 'failedOver' | 'failed' | 'tagged', string> = {
    answered: '',
    failedOver: '',
    failed: '',
    tagged: '',
  };

  beforeAll(async () => {
    [upstream, other] = [await startUpstream(), await startUpstream()];
    gateway = await startGateway({
      upstreams: { first: { url: upstream.url }, second: { url: other.url } },
      routes: [
        { upstream: 'first', model: 'a' },
        { upstream: 'second', model: 'b' },
      ],
      price: { input: '1', output: '2' },
    });
    const { secret: tagged } = await gateway.gateway.createKey('tagging', { tags: ['night'] });
    const ask = async (headers = {}): Promise<string> => {
      const body = { model: 'small', messages: [{ role: 'user', content: 'x' }] };
      const answer = await gateway.post('/v1/chat/completions', body, { headers });
      await answer.text();
      return answer.headers.get('x-request-id') ?? '';
    };
    const failing: Parameters<ScriptedUpstream['play']>[0] = (response) =>
      sendJson(response, 500, JSON.stringify({ error: { message: words } }));
    upstream.play(sayTexts(['x']));
    other.play(sayTexts(['x']));
    ids.answered = await ask();
    ids.tagged = await ask({ authorization: `Bearer ${tagged}`, 'x-textgate-tag': 'night' });
    upstream.play(failing);
    ids.failedOver = await ask();
    other.play(failing);
    ids.failed = await ask();
    await gateway.recorded();
  });
  afterAll(async () => {
    await gateway.close();
    await Promise.all([upstream.close(), other.close()]);
  });

  /** The ids that a list with a query has, oldest first. */
  async function listed(query: Readonly<Record<string, string>>): Promise<readonly string[]> {
    const { body } = await askAdmin(gateway, 'GET', `/records?${new URLSearchParams(query).toString()}`);
    return (body.data as readonly PresentedRecord[]).map((record) => record.request_id).toReversed();
  }

  test.for([
    [{ outcome: 'completed' }, ['answered', 'tagged', 'failedOver']],
    [{ outcome: 'upstream_failed' }, ['failed']],
    [{ outcome: 'lost' }, []],
    [{ upstream: 'second' }, ['failedOver', 'failed']],
    [{ cause: '100% of "slots_"' }, ['failedOver', 'failed']],
    [{ cause: '100X' }, []],
    [{ cause: 'the server failed (status 500)', upstream: 'first' }, []],
    [{ cause: 'upstream_error' }, ['failed']],
    [{ tag: 'night' }, ['tagged']],
    [{ tag: '', upstream: 'first' }, ['answered']],
    [{ status: '502' }, ['failed']],
    [{ min_amount: '0.000001' }, ['answered', 'tagged', 'failedOver']],
    [{ min_amount: '5' }, []],
    [{ min_duration_ms: '600000' }, []],
    [{ max_duration_ms: '600000' }, ['answered', 'tagged', 'failedOver', 'failed']],
    [{ upstream: hostile }, []],
    [{ model: hostile.repeat(40), tag: hostile, cause: hostile }, []],
    [{ cause: 'x'.repeat(10_000) }, []],
  ] as const)('%o', async ([query, wanted]) => {
    expect(await listed(query as Readonly<Record<string, string>>)).toEqual(wanted.map((name) => ids[name]));
  });

  test('a day of 23 hours, whose ends have other offsets', async () => {
    const [from, to] = ['2030-03-31T00:00:00+01:00', '2030-04-01T00:00:00+02:00'];
    expect(await listed({ from, to, outcome: 'completed' })).toEqual([]);
    const today = new Date().toISOString().slice(0, 10);
    expect(await listed({ from: `${today}T00:00:00+14:00`, outcome: 'upstream_failed' })).toEqual([
      ids.failed,
    ]);
  });

  test('what they have in common is shown with all times of a request, in their order', async () => {
    const { body } = await askAdmin(gateway, 'GET', `/records/${ids.failedOver}`);
    const { timings, attempts } = body as PresentedRecord;
    const [first, second] = attempts.map(({ started_ms: from, duration_ms: ms }) => [
      from ?? 0,
      (from ?? 0) + ms,
    ]);
    // Each part is rounded to whole milliseconds.
    const order = [
      timings.queued_ms,
      ...(first ?? []),
      ...(second ?? []),
      timings.total_ms,
      timings.settled_ms,
    ];
    for (const [at, ms] of order.entries()) expect(ms ?? -1).toBeGreaterThanOrEqual((order[at - 1] ?? 0) - 2);
  });

  test('from code, and as CSV', async () => {
    const { data } = await gateway.gateway.records.list({ status: '502' });
    expect(data.map(({ request_id: id }) => id)).toEqual([ids.failed]);
    const csv = await fetch(`${gateway.adminUrl}/admin/records?tag=night`, {
      headers: { authorization: `Bearer ${gateway.adminToken}`, accept: 'text/csv' },
    });
    expect((await csv.text()).split('\r\n').slice(1)).toEqual([expect.stringContaining(ids.tagged), '']);
  });

  test('options of the command line', async () => {
    const environment = {
      TEXTGATE_ADMIN_URL: gateway.adminUrl,
      TEXTGATE_ADMIN_TOKEN: gateway.adminToken,
    };
    const run = (...options: readonly string[]) =>
      runCommand(['records', ...options], undefined, environment);
    const { stdout } = await run('--cause', 'slots_', '--upstream', 'second', '--max-duration', '10m');
    expect(stdout.trim().split('\n').slice(1)).toEqual([
      expect.stringContaining(ids.failed.slice(-8)),
      expect.stringContaining(ids.failedOver.slice(-8)),
    ]);
    const wrong = await run('--outcome', 'faild');
    expect(wrong).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/--outcome: expected one of completed, inco/),
    });
    expect((await run('--tag', 'nihgt')).stderr).toMatch(
      /no request has the tag nihgt; did you mean night\?/,
    );
    expect((await run('--min-duration', '5')).stderr).toMatch(/--min-duration: expected a duration such as/);
  });

  test.for([
    ['outcome=failed', /^Invalid 'outcome': expected one of completed, incomplete, .*, server_error\.$/],
    ['from=2030-01-02&to=2030-01-01', /^Invalid 'to': expected a time after 'from'\.$/],
    ['from=2030-01-01&to=2030-01-01', /^Invalid 'to'/],
    [
      'min_duration_ms=5&max_duration_ms=4',
      /^Invalid 'max_duration_ms': expected 'min_duration_ms' or more\.$/,
    ],
    ['min_duration_ms=-1', /^Invalid 'min_duration_ms': expected a whole number from 1 to 2147483647\.$/],
    ['status=1000', /^Invalid 'status': expected a whole number from 100 to 599\.$/],
    ['min_amount=-1', /^Invalid 'min_amount': expected USD/],
    ['cause=', /^Invalid 'cause': expected a part of a cause\.$/],
    ['cause=%00', /^Invalid 'cause': expected a text without the character U\+0000\.$/],
    ['upstreams=x', /^Unknown parameter: 'upstreams'\. Did you mean 'upstream'\?/],
    ['key=key_aaaaaaaaaaaa', /^No key has this id/],
  ] as const)('nothing that is wrong: %s', async ([query, message]) => {
    const { status, body } = await askAdmin(gateway, 'GET', `/records?${query}`);
    expect(status).toBeGreaterThanOrEqual(400);
    expect(body.error.message).toMatch(message);
  });
});

import { afterEach, expect, test } from 'vitest';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { sendJson, startUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGatewayOptions } from '../support/test-gateway.ts';

const open: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close();
});

interface LogLine {
  readonly msg: string;
  readonly [field: string]: unknown;
}

/** A gateway in front of an upstream, with the lines of its log. */
async function start(upstream: ScriptedUpstream, options: TestGatewayOptions = {}) {
  const log: LogLine[] = [];
  const logDestination = { write: (line: string) => void log.push(JSON.parse(line) as LogLine) };
  const gateway = await startGateway({ upstreamUrl: upstream.url, logDestination, ...options });
  open.push(() => gateway.close());
  const ask = async (): Promise<Response> => {
    const response = await gateway.post('/v1/chat/completions', {
      model: 'small',
      messages: [{ role: 'user', content: 'x' }],
    });
    await response.clone().text();
    return response;
  };
  const lastRequest = (): LogLine | undefined => log.findLast(({ msg }) => msg === 'request');
  return { log, ask, lastRequest };
}

async function startFailing(status: number, headers: object = {}): Promise<ScriptedUpstream> {
  const upstream = await startUpstream();
  upstream.play((response) => sendJson(response, status, '{}', headers));
  open.push(() => upstream.close());
  return upstream;
}

test('a request that is not sent because of a pause is logged with the upstream and the seconds that are left', async () => {
  const { ask, lastRequest } = await start(await startFailing(429, { 'retry-after': '30' }));
  await ask();
  const response = await ask();
  expect(response.status).toBe(429);
  expect(lastRequest()).toMatchObject({
    code: 'upstream_rate_limited',
    attempts: [],
    cause: expect.stringMatching(
      /^local: tiny is paused by the provider \(retry-after\), which ends in (29|30) s$/,
    ),
  });
  expect(await response.text()).not.toContain('local');
});

test('a circuit that opens is logged with its reason and with how long it stays open', async () => {
  const upstream = await startFailing(500);
  const { ask, log } = await start(upstream);
  for (let round = 0; round < 5; round++) await ask();
  expect(log.filter(({ msg }) => msg === 'upstream circuit opened')).toMatchObject([
    {
      upstream: 'local',
      cause: `POST ${upstream.url}/chat/completions: the server failed (status 500). Check its log, or the status page of the provider.`,
      trialAfterMs: 5_000,
    },
  ]);
});

test('a request that fails for lack of a list of models is logged with the cause, which its client does not get', async () => {
  const upstream = await startFailing(401);
  const { ask, lastRequest } = await start(upstream, { discover: true });
  const response = await ask();
  expect(response.status).toBe(502);
  expect(lastRequest()).toMatchObject({
    code: 'upstream_unavailable',
    cause: `no list of models yet: GET ${upstream.url}/models: the API key is not accepted (status 401). Correct upstreams.local.apiKey.`,
  });
  expect(await response.text()).not.toContain('127.0.0.1');
});

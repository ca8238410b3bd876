import { expect, onTestFinished, test } from 'vitest';
import { maxWatchers } from '../../src/http/admin/status-watch.ts';
import { logIn } from '../support/console-client.ts';
import { eventually } from '../support/eventually.ts';
import { openRaw } from '../support/raw-socket.ts';
import type { RawSocket } from '../support/raw-socket.ts';
import { sayTexts, startUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';

/** How many pages are open at once. */
const pages = 200;

const statusOf = ({ text }: RawSocket): string => /^HTTP\/1\.1 (\d+) /.exec(text())?.[1] ?? '';

test('two hundred pages that follow the status take no more than its places, and give them back', async () => {
  const upstream = await startUpstream();
  upstream.play(sayTexts(['one']));
  let log = '';
  const gateway = await startGateway({
    upstreamUrl: upstream.url,
    limits: { requestsPerMinute: 1_000_000, concurrency: 1_000 },
    logDestination: { write: (line) => void (log += line) },
  });
  onTestFinished(async () => {
    await gateway.close();
    await upstream.close();
  });
  const { host } = new URL(gateway.adminUrl);
  const { cookie } = await logIn(gateway, gateway.adminToken);
  const follow = (): RawSocket => {
    const raw = openRaw(gateway.adminUrl);
    raw.socket.write(
      `GET /admin/status?limit=1000 HTTP/1.1\r\nHost: ${host}\r\nCookie: ${cookie}\r\nAccept: text/event-stream\r\n\r\n`,
    );
    return raw;
  };
  const ask = async (): Promise<number> => {
    const body = { model: 'small', messages: [{ role: 'user', content: 'x' }] };
    const answer = await gateway.post('/v1/chat/completions', body);
    await answer.text();
    return answer.status;
  };
  for (let round = 0; round < 2; round++) {
    const open = Array.from({ length: pages }, follow);
    const asked = Promise.all(Array.from({ length: 20 }, ask));
    await eventually('all have an answer', () => open.every((raw) => statusOf(raw) !== ''), 4000).catch(() =>
      console.log(
        'DBG',
        JSON.stringify(
          Object.entries(Object.groupBy(open, (r) => `${statusOf(r)}/${r.isClosed()}/${r.error()}`)).map(
            ([k, v]) => [k, v.length],
          ),
        ),
        log.slice(-1500),
      ),
    );
    expect(await asked).toEqual(Array<number>(20).fill(200));
    const streams = open.filter((raw) => statusOf(raw) === '200');
    const refused = open.filter((raw) => statusOf(raw) === '503');
    expect([streams.length, refused.length]).toEqual([maxWatchers, pages - maxWatchers]);
    await eventually('all refusals are whole', () => refused.every((raw) => raw.text().endsWith('}')));
    for (const raw of refused) expect(raw.text()).toMatch(/"code":"overloaded"/);
    await eventually('all streams have the status', () =>
      streams.every((raw) => raw.text().includes('event: status\n')),
    );
    expect(await ask()).toBe(200);
    for (const { socket } of open) socket.destroy();
    await eventually('a place is free', async () => {
      const raw = follow();
      await eventually('it has an answer', () => statusOf(raw) !== '');
      raw.socket.destroy();
      return statusOf(raw) === '200';
    });
  }
  expect(log).not.toContain('could not be read');
});

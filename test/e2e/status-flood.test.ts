import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { maxWatchers } from '../../src/http/admin/status-watch.ts';
import { logIn, sendRaw } from '../support/console-client.ts';
import { eventually } from '../support/eventually.ts';
import { openRaw } from '../support/raw-socket.ts';
import type { RawSocket } from '../support/raw-socket.ts';
import { sayTexts, startUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';

/** How many pages follow the status. */
const pages = 200;

let gateway: TestGateway;
let cookie = '';
let log = '';
beforeEach(async () => {
  const upstream = await startUpstream();
  upstream.play(sayTexts(['one']));
  log = '';
  gateway = await startGateway({
    upstreamUrl: upstream.url,
    limits: { requestsPerMinute: 1_000_000, concurrency: 1_000 },
    logDestination: { write: (line) => void (log += line) },
  });
  ({ cookie } = await logIn(gateway, gateway.adminToken));
  onTestFinished(async () => {
    await gateway.close();
    await upstream.close();
  });
});

/** Follows the status on a connection of its own, as a page does. */
function follow(): RawSocket {
  const raw = openRaw(gateway.adminUrl);
  const { host } = new URL(gateway.adminUrl);
  const fields = [`Host: ${host}`, `Cookie: ${cookie}`, 'Accept: text/event-stream'];
  raw.socket.write(`GET /admin/status?limit=1000 HTTP/1.1\r\n${fields.join('\r\n')}\r\n\r\n`);
  return raw;
}

/** The status of an answer; `cut` for a connection that was closed without one, and `null` as long as there is neither. */
function statusOf({ text, isClosed }: RawSocket): string | null {
  return /^HTTP\/1\.1 (\d+) /.exec(text())?.[1] ?? (isClosed() ? 'cut' : null);
}

async function ask(): Promise<number> {
  const body = { model: 'small', messages: [{ role: 'user', content: 'x' }] };
  const answer = await gateway.post('/v1/chat/completions', body);
  await answer.text();
  return answer.status;
}

/** Resolves when all pages have a whole refusal, the status, or no connection; returns those of each kind. */
async function settle(open: readonly RawSocket[]) {
  const having = (status: string): readonly RawSocket[] => open.filter((raw) => statusOf(raw) === status);
  await eventually('all know how it is', () => open.every((raw) => statusOf(raw) !== null));
  await eventually('all refusals are whole', () => having('503').every((raw) => raw.text().endsWith('}')));
  await eventually('all streams have the status', () =>
    having('200').every((raw) => raw.text().includes('event: status\n')),
  );
  return { streams: having('200'), refused: having('503'), cut: having('cut') };
}

/** Ends connections, and resolves when all places are free again. */
async function leave(open: readonly RawSocket[]): Promise<void> {
  for (const { socket } of open) socket.destroy();
  await eventually('all places are free', async () => {
    const next = Array.from({ length: maxWatchers }, follow);
    const { streams } = await settle(next);
    for (const { socket } of next) socket.destroy();
    return streams.length === maxWatchers;
  });
}

test('two hundred pages at once take no more than the places, while clients and operators are answered', async () => {
  for (let round = 0; round < 2; round++) {
    const open = Array.from({ length: pages }, follow);
    const asked = await Promise.all(Array.from({ length: 20 }, ask));
    expect(asked).toEqual(Array<number>(20).fill(200));
    // The listener for operators has fewer connections than there are pages: the others are closed.
    const { streams, refused, cut } = await settle(open);
    expect([streams.length, streams.length + refused.length + cut.length]).toEqual([maxWatchers, pages]);
    for (const raw of refused) expect(raw.text()).toContain('"code":"overloaded"');
    // A page leaves when it is refused; those that stay take no more than their places from other operators.
    for (const { socket } of refused) socket.destroy();
    await eventually('operators are answered', async () => {
      const headers = [['Cookie', cookie]] as const;
      return (await sendRaw(gateway, { target: '/admin/keys', headers })).status === 200;
    });
    expect(streams.some((raw) => raw.isClosed())).toBe(false);
    expect(await ask()).toBe(200);
    await leave(open);
  }
  expect(log).not.toContain('could not be read');
});

test('two hundred pages that come in turn get the places or a refusal with its code', async () => {
  const held = Array.from({ length: maxWatchers }, follow);
  expect((await settle(held)).streams).toHaveLength(maxWatchers);
  const others = pages - maxWatchers;
  const atOnce = 12;
  for (let begun = 0; begun < others; begun += atOnce) {
    const open = Array.from({ length: atOnce }, follow);
    const { refused } = await settle(open);
    expect(refused).toHaveLength(atOnce);
    for (const raw of refused) expect(raw.text()).toMatch(/retry-after: 1\r\n[^]*"code":"overloaded"/i);
    for (const { socket } of open) socket.destroy();
  }
  expect(held.some((raw) => raw.isClosed())).toBe(false);
  expect(await ask()).toBe(200);
  await leave(held);
});

import { describe, expect, test } from 'vitest';
import { clientRows, keyMark, operatorRows, refusedHeads, tokenMark } from '../support/attack-rows.ts';
import { eventually } from '../support/eventually.ts';
import { openRaw } from '../support/raw-socket.ts';
import { openStage } from '../support/stage.ts';
import { openTlsStage } from '../support/tls-stage.ts';

/**
 * The attacks that a report once tried, as bytes on a connection of their own, and what they are answered. Those whose answer
 * depends on a state, such as a full disk, have tests of their own.
 */

const options = {
  limits: { concurrency: 1_000 },
  server: { maxBody: '64KiB' },
  passthrough: [{ path: '/tokenize', upstream: 'local' }],
};
const stages = [
  ['one process', await openStage(options)],
  ['over TLS', await openTlsStage(options)],
] as const;

const said = '{"error":{"message":"Wrong key: sk-upstream-secret"}}';
const answer = (line: string, ...lines: readonly string[]): string =>
  `HTTP/1.1 ${[line, `content-length: ${said.length}`, ...lines].join('\r\n')}\r\n\r\n${said}`;

/** What clients get for an upstream's answer: to a question, and passed on. */
const upstreamRows: readonly (readonly [what: string, bytes: string, asked: number, passedOn: number])[] = [
  ['no answer', '', 502, 502],
  ['no HTTP', 'SSH-2.0-x\r\n', 502, 502],
  ['a switch of protocols', 'HTTP/1.1 101 X\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n', 502, 502],
  ['a status below 100', answer('099 X'), 502, 502],
  ['a status of four figures', answer('2000 X'), 502, 502],
  ['401 with the key', answer('401 X'), 502, 502],
  ['402 with the key', answer('402 X'), 502, 502],
  ['403 with the key', answer('403 X'), 502, 502],
  ['a redirect', answer('307 X', 'location: http://127.0.0.1:1/'), 502, 307],
  ['a status that is none', answer('999 X'), 502, 999],
  ['two lengths', answer('200 OK', 'content-length: 5'), 502, 502],
];

describe.each(stages)('%s:', (_stage, { upstream, gateway }) => {
  const { url, adminUrl } = gateway;

  /** Sends bytes on a connection of their own; resolves with what came back, which has so many answers, or is the last. */
  async function exchange(to: string, bytes: string, answers: number): Promise<string> {
    const client = openRaw(to);
    const filled = bytes.replaceAll(keyMark, gateway.key).replaceAll(tokenMark, gateway.adminToken);
    client.socket.write(filled, 'latin1');
    const isAnswered = () => statusesOf(client.text()).length === answers || client.isClosed();
    await eventually('it is answered', isAnswered);
    return client.text();
  }

  test.each(refusedHeads)('%s', async (_attack, bytes, statuses) => {
    for (const to of [url, adminUrl]) expect(statusesOf(await exchange(to, bytes, 1))).toEqual(statuses);
    expect(upstream.seen).toEqual([]);
  });

  test.each(clientRows)('%s', async (_attack, bytes, statuses) => {
    const text = await exchange(url, bytes, statuses.length);
    expect(statusesOf(text)).toEqual(statuses);
    expect(text).not.toMatch(/100 Continue/);
    expect(text.match(/x-content-type-options: nosniff/g)).toHaveLength(statuses.length);
    for (const secret of [gateway.key, gateway.adminToken]) expect(text).not.toContain(secret);
    expect(upstream.seen).toEqual([]);
  });

  test.each(operatorRows)('operators: %s', async (_attack, bytes, statuses) => {
    expect(statusesOf(await exchange(adminUrl, bytes, statuses.length))).toEqual(statuses);
  });

  test.each(upstreamRows)('an upstream sends %s', async (_what, bytes, asked, passedOn) => {
    upstream.play((response) => void response.socket?.end(bytes));
    const question = { model: 'small', messages: [{ role: 'user', content: 'x' }] };
    for (const [path, body, status] of [
      ['/v1/chat/completions', question, asked],
      ['/v1/chat/completions', { ...question, stream: true }, asked],
      ['/v1/responses', { model: 'small', input: 'x' }, asked],
      ['/tokenize', {}, passedOn],
    ] as const) {
      const got = await gateway.post(path, body, { redirect: 'manual' });
      const showsKey = (await got.text()).includes('sk-upstream-secret');
      expect([path, got.status, showsKey]).toEqual([path, status, status !== 502]);
    }
    upstream.seen.length = 0;
  });

  test('GET, POST and OPTIONS over RTSP/1.x are read as HTTP: Node does not say which one it was', async () => {
    for (const method of ['GET', 'POST', 'OPTIONS'])
      for (const version of ['1.0', '1.1']) {
        const line = `${method} /v1/models`;
        const [rtsp, http] = await Promise.all(
          ['RTSP', 'HTTP'].map((name) => exchange(url, `${line} ${name}/${version}\r\nHost: x\r\n\r\n`, 1)),
        );
        expect(statusesOf(rtsp ?? '')).toEqual(statusesOf(http ?? ''));
      }
  });
});

/** The statuses of all answers on a connection. */
function statusesOf(text: string): readonly number[] {
  return [...text.matchAll(/HTTP\/1\.1 ([2-5]\d\d) /g)].map(([, status]) => Number(status));
}

import { readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/composition/clock.ts';
import type { Clock } from '../../src/domain/ports/clock.ts';
import { createWebhookClient } from '../../src/transport/webhook-client.ts';
import type { WebhookClientOptions } from '../../src/transport/webhook-client.ts';
import { makeAuthority } from '../support/certificates.ts';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { startHttpProxy } from '../support/http-proxy.ts';
import { startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { startTlsUpstream } from '../support/tls-upstream.ts';

let receiver: ScriptedUpstream;
beforeEach(async () => {
  receiver = await startUpstream();
  receiver.play((response) => void response.writeHead(200).end('{}'));
});
afterEach(() => receiver.close());

function open(options: Partial<WebhookClientOptions> = {}, clock: Clock = systemClock) {
  const url = new URL(`${receiver.url}/hook?token=x`);
  const basics = { url, secrets: ['a secret of the test'], connectMs: 2_000, allowLinkLocal: false };
  const client = createWebhookClient({ ...basics, ...options }, clock);
  onTestFinished(() => client.close());
  return (id = 'evt_1') => client.send(id, `{"id":"${id}"}`, new AbortController().signal);
}

const accepted = { kind: 'delivered', status: 200 };

describe('the sender of a webhook', () => {
  test('sends the path and the query of its URL, and the body as it is signed', async () => {
    expect(await open()()).toEqual(accepted);
    const [{ method, path, body, headers } = { headers: {} }] = receiver.seen;
    expect([method, path, body]).toEqual(['POST', '/v1/hook?token=x', '{"id":"evt_1"}']);
    expect(headers).toMatchObject({ 'webhook-id': 'evt_1', 'content-length': '14' });
  });

  test('sends again on a new connection where a kept one was closed meanwhile', async () => {
    const send = open();
    expect(await send()).toEqual(accepted);
    receiver.play((response, { headers }) => {
      if (headers['webhook-id'] === 'evt_2') response.socket?.destroy();
      else response.end();
    });
    // The connection is free for another request from the next turn on.
    await setImmediate();
    expect(await send('evt_2')).toMatchObject({ kind: 'failed' });
    expect(receiver.seen.filter(({ headers }) => headers['webhook-id'] === 'evt_2')).toHaveLength(2);
    expect(await send('evt_3')).toEqual(accepted);
  });

  test('follows no redirect, and hands on how long it is to wait', async () => {
    receiver.play((response) => void response.writeHead(307, { location: '/v1/other' }).end());
    expect(await open()()).toEqual({ kind: 'failed', reason: 'status 307', retryAfterMs: null });
    receiver.play((response) => void response.writeHead(503, { 'retry-after': '90' }).end());
    expect(await open()()).toEqual({ kind: 'failed', reason: 'status 503', retryAfterMs: 90_000 });
    expect(receiver.seen).toHaveLength(2);
  });

  test('reads no more of an answer than it needs: one without an end is judged by its status', async () => {
    let written = 0;
    receiver.play((response) => {
      response.writeHead(200);
      const writeNext = async (): Promise<void> => {
        await setImmediate();
        write();
      };
      const write = (): void => {
        if (response.destroyed) return;
        written += 65_536;
        if (response.write(Buffer.alloc(65_536))) void writeNext();
        else response.once('drain', write);
      };
      write();
    });
    expect(await open()()).toEqual(accepted);
    expect(written).toBeLessThan(100_000_000);
  });

  test('gives a receiver 8 s for all of its answer, however it drips, and for any number of early statuses', async () => {
    const clock = createFakeClock();
    const send = open({}, clock);
    for (const begin of [
      (response: ServerResponse) => void response.writeHead(200, { 'content-length': 1_000 }),
      () => {},
    ]) {
      const drips: (() => void)[] = [];
      receiver.play((response) => {
        begin(response);
        drips.push(() => void (response.headersSent ? response.write('x') : response.writeProcessing()));
      });
      let result: unknown = null;
      const sent = send().then((found) => (result = found));
      await eventually('it came', () => drips.length === 1);
      for (let second = 0; second < 8; second++) {
        expect(result).toBeNull();
        drips[0]?.();
        clock.advance(1_000);
        await setImmediate();
      }
      expect(await sent).toEqual({
        kind: 'failed',
        reason: 'no whole answer within 8 s',
        retryAfterMs: null,
      });
    }
    receiver.play((response) => {
      for (let status = 0; status < 100; status++) response.writeProcessing();
      response.writeHead(204).end();
    });
    expect(await send()).toEqual({ kind: 'delivered', status: 204 });
  });

  test('takes no half of an answer for one, whatever its status', async () => {
    receiver.play((response) => {
      response.writeHead(200, { 'content-length': 10 }).write('half', () => response.destroy());
    });
    expect(await open()()).toMatchObject({
      kind: 'failed',
      reason: expect.stringMatching(/^the connection broke in the middle of the answer/),
    });
  });

  test('says what is wrong with a certificate, and names no address', async () => {
    const authority = makeAuthority();
    const secure = await startTlsUpstream(authority.issue('localhost'), authority, (response) => {
      response.writeHead(200).end();
    });
    onTestFinished(() => secure.close());
    const certificates = { ca: readFileSync(authority.cert, 'utf8') };
    const url = new URL(secure.url);
    const reasonOf = async (options: Partial<WebhookClientOptions>): Promise<unknown> =>
      ((await open(options)()) as { readonly reason?: string }).reason;
    expect(await reasonOf({ url })).toBe('the connection failed (SELF_SIGNED_CERT_IN_CHAIN)');
    expect(await reasonOf({ url, certificates: () => certificates, serverName: 'other.example' })).toBe(
      'the connection failed (ERR_TLS_CERT_ALTNAME_INVALID)',
    );
    const plain = new URL(receiver.url.replace('http:', 'https:'));
    expect(await reasonOf({ url: plain })).toMatch(/^the connection failed \(\w+\)$/);
  });

  test('never connects to a link-local address, and names no address in its failures', async () => {
    const url = new URL('http://hooks.example/secret-path');
    const send = open({
      url,
      lookup: (_name, _options, callback) => callback(null, [{ address: '169.254.169.254', family: 4 }]),
    });
    const result = await send();
    expect(result).toEqual({
      kind: 'failed',
      reason: 'the connection failed (LINK_LOCAL_REFUSED)',
      retryAfterMs: null,
    });
  });

  test('goes through its proxy, with and without TLS, and shows its certificate', async () => {
    const proxy = await startHttpProxy();
    onTestFinished(() => proxy.close());
    const authority = makeAuthority();
    const client = authority.issue('gateway');
    const secure = await startTlsUpstream(authority.issue('localhost'), authority, (response) => {
      response.writeHead(200).end();
    });
    onTestFinished(() => secure.close());
    const through = { proxy: { url: new URL(proxy.url), authorization: null } };
    expect(await open(through)()).toEqual(accepted);
    const certificates = {
      ca: readFileSync(authority.cert, 'utf8'),
      cert: readFileSync(client.cert, 'utf8'),
      key: readFileSync(client.key, 'utf8'),
    };
    const url = new URL(secure.url);
    expect(await open({ ...through, url, certificates: () => certificates })()).toEqual(accepted);
    expect(secure.seen).toMatchObject([{ client: 'gateway' }]);
    expect(proxy.asked).toEqual([`POST ${receiver.url}/hook?token=x`, `CONNECT ${url.host}`]);
    expect(await open({ url })()).toMatchObject({ kind: 'failed' });
  });
});

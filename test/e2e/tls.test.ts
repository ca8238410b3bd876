import { copyFileSync, writeFileSync } from 'node:fs';
import { connect as connectPlain } from 'node:net';
import tls, { connect } from 'node:tls';
import type { ConnectionOptions, TLSSocket } from 'node:tls';
import { expect, onTestFinished, test } from 'vitest';
import { makeCertificate, replaceCertificate, trustCertificate } from '../support/certificate.ts';
import type { TestCertificate } from '../support/certificate.ts';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import type { FakeClock } from '../support/fake-clock.ts';
import { openRaw, rawPost } from '../support/raw-socket.ts';
import { chatFrames, sayTexts, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway, TestGatewayOptions } from '../support/test-gateway.ts';

const messages = [{ role: 'user' as const, content: 'Say hello' }];
const listModels = (key: string): string =>
  `GET /v1/models HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`;

/** How long a handshake may take, and how often the files of the certificate are read, in milliseconds. */
const handshakeMs = 10_000;
const readAgainMs = 2_000;

/** A gateway with TLS, on a clock of its own, that ends with the test. */
async function open(options: TestGatewayOptions = {}) {
  const certificate = makeCertificate(makeTemporaryFolder());
  trustCertificate(certificate);
  const clock = createFakeClock(Date.now());
  const log: string[] = [];
  const gateway = await startGateway({
    clock,
    logDestination: { write: (line) => void log.push(line) },
    ...options,
    server: { ...options.server, tls: certificate.paths },
  });
  onTestFinished(() => gateway.close());
  return { gateway, certificate, clock, log };
}

async function metric(gateway: TestGateway, name: string): Promise<number> {
  const text = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
  const line = text.split('\n').find((each) => each.startsWith(`${name} `));
  return Number(line?.split(' ')[1]);
}

const refused = (gateway: TestGateway, reason: string): Promise<number> =>
  metric(gateway, `textgate_connections_refused_total{reason="${reason}"}`);

/** Opens a TLS connection that ends with the test; resolves when its handshake is done. */
async function handshake(
  gateway: { readonly url: string },
  options: ConnectionOptions = {},
): Promise<TLSSocket> {
  const socket = connect({ host: '127.0.0.1', port: Number(new URL(gateway.url).port), ...options });
  onTestFinished(() => void socket.destroy());
  await new Promise<void>((resolve, reject) => {
    socket.once('secureConnect', resolve);
    socket.once('error', reject);
  });
  return socket;
}

/** The certificate that a new connection gets, in PEM. */
async function servedCertificate(gateway: { readonly url: string }): Promise<string | undefined> {
  const socket = await handshake(gateway, { rejectUnauthorized: false });
  return socket.getPeerX509Certificate()?.toString();
}

test('the official client gets whole answers and streams over TLS', async () => {
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  const { gateway } = await open({ upstreamUrl: upstream.url });
  expect(gateway.url).toMatch(/^https:/);
  upstream.play(sayTexts(['one ', 'two']));
  const whole = await gateway.client.chat.completions.create({ model: 'small', messages });
  expect(whole.choices[0]?.message.content).toBe('one two');
  const stream = await gateway.client.chat.completions.create({ model: 'small', messages, stream: true });
  const chunks = await Array.fromAsync(stream);
  expect(chunks.map(({ choices: [choice] }) => choice?.delta.content ?? '').join('')).toBe('one two');
});

test('frames arrive one by one over TLS, and a client that leaves stops its upstream', async () => {
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  const { gateway } = await open({ upstreamUrl: upstream.url });
  const frames = chatFrames(['one ', 'two']);
  const gate = Promise.withResolvers<void>();
  upstream.play((response) => {
    sendStream(response, frames.slice(0, 2));
    void gate.promise.then(() => response.write(frames[2]));
  });
  const client = openRaw(gateway.url);
  client.socket.write(
    rawPost('/v1/chat/completions', gateway.key, { model: 'small', messages, stream: true }),
  );
  await eventually('the first text has arrived', () => client.text().includes('one '));
  expect(client.text()).not.toContain('two');
  gate.resolve();
  await eventually('the second text has arrived', () => client.text().includes('two'));
  client.socket.destroy();
  await eventually('the upstream is stopped', () => upstream.aborted === 1);
});

/** Lets the process speak old versions of TLS, as its flags can: what is refused then is refused by the gateway. */
function allowOldVersions(): void {
  const { DEFAULT_CIPHERS: ciphers, DEFAULT_MIN_VERSION: version } = tls;
  onTestFinished(() => void Object.assign(tls, { DEFAULT_CIPHERS: ciphers, DEFAULT_MIN_VERSION: version }));
  Object.assign(tls, { DEFAULT_CIPHERS: 'DEFAULT@SECLEVEL=0', DEFAULT_MIN_VERSION: 'TLSv1' });
}

test('TLS has at least version 1.2, and HTTP/1.1 is what is agreed on', async () => {
  allowOldVersions();
  const { gateway } = await open();
  const old = { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const;
  await expect(handshake(gateway, old)).rejects.toThrow(/protocol version|unsupported protocol/);
  await eventually('it is counted', async () => (await refused(gateway, 'handshake_failed')) === 1);
  await expect(handshake(gateway, { ca: [] })).rejects.toThrow('self-signed certificate');
  const socket = await handshake(gateway, { minVersion: 'TLSv1.2', ALPNProtocols: ['h2', 'http/1.1'] });
  expect(socket.alpnProtocol).toBe('http/1.1');
});

test('a client may not renegotiate, with the first certificate and with a later one', async () => {
  const { gateway, certificate, clock, log } = await open();
  const renegotiate = async (): Promise<string | undefined> => {
    const socket = await handshake(gateway, { maxVersion: 'TLSv1.2', rejectUnauthorized: false });
    const failed = Promise.withResolvers<Error | null>();
    socket.once('error', failed.resolve);
    socket.renegotiate({}, failed.resolve);
    return (await failed.promise)?.message;
  };
  expect(await renegotiate()).toContain('no renegotiation');
  replaceCertificate(certificate, makeCertificate(makeTemporaryFolder()));
  await readUntil(clock, () => log.some((line) => line.includes('the TLS certificate is replaced')));
  expect(await renegotiate()).toContain('no renegotiation');
});

test('plain HTTP on the TLS port is closed without an answer, and TLS on a plain port is refused', async () => {
  const { gateway } = await open();
  const plain = openRaw(gateway.url.replace('https:', 'http:'));
  plain.socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
  await eventually('the connection is closed', plain.isClosed);
  expect(plain.text()).not.toContain('HTTP/1.1 200');
  expect(await refused(gateway, 'handshake_failed')).toBe(1);
  await expect(handshake(gateway, { port: Number(new URL(gateway.adminUrl).port) })).rejects.toThrow(
    'wrong version number',
  );
  expect((await fetch(`${gateway.url}/healthz`)).status).toBe(200);
});

test('a silent and a slow handshake are cut after 10 s in all, and counted', async () => {
  const { gateway, clock } = await open();
  const address = { host: '127.0.0.1', port: Number(new URL(gateway.url).port) };
  const [silent, slow] = [connectPlain(address), connectPlain(address)];
  let closed = 0;
  for (const socket of [silent, slow]) {
    onTestFinished(() => void socket.destroy());
    socket.on('error', () => {});
    socket.on('close', () => closed++);
  }
  await eventually('both are accepted', async () => {
    await fetch(`${gateway.adminUrl}/healthz`);
    return silent.readyState === 'open' && slow.readyState === 'open';
  });
  // The beginning of a ClientHello, byte by byte, of which Node's own limit would begin anew with each.
  for (const byte of [0x16, 0x03, 0x01, 0x02]) {
    slow.write(Buffer.of(byte));
    await fetch(`${gateway.adminUrl}/healthz`);
    clock.advance(handshakeMs / 5);
  }
  expect(closed).toBe(0);
  clock.advance(handshakeMs / 5);
  await eventually('both are cut', () => closed === 2);
  expect(await refused(gateway, 'handshake_timeout')).toBe(2);
  expect(await refused(gateway, 'handshake_failed')).toBe(0);
  expect((await fetch(`${gateway.url}/healthz`)).status).toBe(200);
});

test('a client that closes before its handshake is done, as a TCP check, is closed at once and not counted', async () => {
  const { gateway } = await open();
  const closed = Promise.withResolvers<void>();
  const socket = connectPlain({
    host: '127.0.0.1',
    port: Number(new URL(gateway.url).port),
    allowHalfOpen: true,
  });
  onTestFinished(() => void socket.destroy());
  socket.resume().on('end', () => closed.resolve());
  // The beginning of a ClientHello.
  socket.end(Buffer.of(0x16, 0x03, 0x01, 0x02));
  await closed.promise;
  for (const reason of ['handshake_timeout', 'handshake_failed'])
    expect(await refused(gateway, reason)).toBe(0);
});

test('connections count against the limit of their address before their handshake, and close with the gateway', async () => {
  const { gateway } = await open({ server: { maxAnonymousPerAddress: 3 } });
  const address = { host: '127.0.0.1', port: Number(new URL(gateway.url).port), localAddress: '127.0.0.2' };
  let closed = 0;
  const sockets = Array.from({ length: 4 }, () => connectPlain(address));
  for (const socket of sockets) socket.on('error', () => {}).on('close', () => closed++);
  await eventually('one is refused', async () => (await refused(gateway, 'address_limit')) === 1);
  await eventually('it is closed', () => closed === 1);
  await gateway.gateway.close();
  await eventually('the others are closed', () => closed === 4);
});

test('new files are used for new connections, and open ones go on', async () => {
  allowOldVersions();
  const { gateway, certificate, clock, log } = await open();
  const client = openRaw(gateway.url);
  client.socket.write(listModels(gateway.key));
  await eventually('the first answer has arrived', () => client.text().includes('"small"'));
  expect(await servedCertificate(gateway)).toBe(certificate.pem);
  const next = makeCertificate(makeTemporaryFolder());
  replaceCertificate(certificate, next);
  await readUntil(clock, () => log.some((line) => line.includes('the TLS certificate is replaced')));
  expect(await servedCertificate(gateway)).toBe(next.pem);
  expect(await metric(gateway, 'textgate_config_reloads_total{result="ok"}')).toBe(1);
  client.socket.write(listModels(gateway.key));
  await eventually('the second answer has arrived', () => client.text().split('"small"').length === 3);
  expect(client.isClosed()).toBe(false);
  await expect(
    handshake(gateway, {
      ca: [next.pem],
      minVersion: 'TLSv1.1',
      maxVersion: 'TLSv1.1',
      ciphers: 'ALL@SECLEVEL=0',
    }),
  ).rejects.toThrow(/protocol version|unsupported protocol/);
});

test('broken new files leave the certificate in use; the fault is logged once, and so is its end', async () => {
  const { gateway, certificate, clock, log } = await open();
  const { paths, pem } = certificate;
  const next = makeCertificate(makeTemporaryFolder());
  const faults = (): readonly string[] => log.filter((line) => line.includes('can not be replaced'));
  // A pair that is half replaced is no fault yet.
  copyFileSync(next.paths.cert, paths.cert);
  await readOnce(clock);
  expect(faults()).toEqual([]);
  await readUntil(clock, () => faults().length > 0);
  await readOnce(clock);
  expect(faults()).toHaveLength(1);
  expect(faults()[0]).toContain('server.tls.key: this key does not belong to the certificate of cert');
  expect(faults()[0]).not.toContain(paths.cert);
  expect(await servedCertificate(gateway)).toBe(pem);
  expect(await metric(gateway, 'textgate_config_reloads_total{result="failed"}')).toBe(1);
  copyFileSync(next.paths.key, paths.key);
  await readUntil(clock, () => log.some((line) => line.includes('can be used again')));
  expect(await servedCertificate(gateway)).toBe(next.pem);
  writeFileSync(paths.cert, 'no certificate');
  await readUntil(clock, () => faults().length === 2);
  expect(faults()[1]).toContain('server.tls.cert: expected a certificate in PEM');
});

test('the end of the certificate is a metric, and in the log once a day when it is near', async () => {
  const soon: TestCertificate = makeCertificate(makeTemporaryFolder(), { days: 10 });
  const { gateway, certificate, clock, log } = await open();
  const warnings = (): readonly string[] => log.filter((line) => line.includes('ends soon'));
  const name = 'textgate_tls_certificate_not_after_seconds';
  expect(await metric(gateway, name)).toBeCloseTo(Date.now() / 1_000 + 365 * 86_400, -3);
  expect(warnings()).toEqual([]);
  replaceCertificate(certificate, soon);
  await readUntil(clock, () => warnings().length > 0);
  expect(await metric(gateway, name)).toBeCloseTo(Date.now() / 1_000 + 10 * 86_400, -3);
  await readOnce(clock);
  expect(warnings()).toHaveLength(1);
});

/** Has the files of the certificate read again and again, until what follows from it holds. */
async function readUntil(clock: FakeClock, condition: () => boolean): Promise<void> {
  await eventually('the files are read again', () => {
    clock.advance(readAgainMs);
    return condition();
  });
}

/** Has them read once more; the next look is scheduled at its end. */
async function readOnce(clock: FakeClock): Promise<void> {
  const before = clock.scheduled;
  clock.advance(readAgainMs);
  await eventually('the files are read once', () => clock.scheduled >= before);
}

import { once } from 'node:events';
import { connect } from 'node:tls';
import OpenAI from 'openai';
import { expect, onTestFinished, test } from 'vitest';
import { makeCertificate, replaceCertificate, trustCertificate } from '../support/certificate.ts';
import { eventually } from '../support/eventually.ts';
import { sayTexts, startUpstream } from '../support/scripted-upstream.ts';
import { serveWorkers } from '../support/served-workers.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { createDatabase, postgresAbsence } from '../support/test-postgres.ts';

const messages = [{ role: 'user' as const, content: 'Say hello' }];

/** The certificate that a new connection is shown, in PEM. */
async function servedCertificate(url: string): Promise<string | undefined> {
  const socket = connect({ host: '127.0.0.1', port: Number(new URL(url).port), rejectUnauthorized: false });
  onTestFinished(() => void socket.destroy());
  await once(socket, 'secureConnect');
  return socket.getPeerX509Certificate()?.toString();
}

test.skipIf(postgresAbsence !== null)('several workers speak TLS, and each reads new files', async () => {
  const [database, upstream] = await Promise.all([createDatabase(), startUpstream()]);
  onTestFinished(async () => {
    await upstream.close();
    await database.drop();
  });
  upstream.play(sayTexts(['one']));
  const certificate = makeCertificate(makeTemporaryFolder());
  const next = makeCertificate(makeTemporaryFolder());
  for (const each of [certificate, next]) trustCertificate(each);
  const served = await serveWorkers({
    databaseUrl: database.url,
    upstreamUrl: upstream.url,
    server: { tls: certificate.paths },
  });
  expect(served.url).toMatch(/^https:/);
  const client = new OpenAI({ baseURL: `${served.url}/v1`, apiKey: served.key, maxRetries: 0 });
  const whole = await client.chat.completions.create({ model: 'small', messages });
  expect(whole.choices[0]?.message.content).toBe('one');
  const line = /^textgate_tls_certificate_not_after_seconds (\d+)$/m.exec(await served.readMetrics());
  expect(Number(line?.[1])).toBeCloseTo(Date.now() / 1_000 + 365 * 86_400, -3);
  replaceCertificate(certificate, next);
  // Connections go to the workers in turn.
  await eventually('both serve the new certificate', async () => {
    const got = [await servedCertificate(served.url), await servedCertificate(served.url)];
    return got.every((pem) => pem === next.pem);
  });
});

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { createServer } from 'node:https';
import type { Server } from 'node:https';
import { makeTemporaryFolder } from './temporary-folder.ts';

/** Starts an HTTPS server on loopback with a certificate that it has signed itself, for `localhost`. */
export async function startTlsServer(
  handler: RequestListener,
): Promise<Server & { readonly certificate: string }> {
  const folder = makeTemporaryFolder();
  const [keyFile, certificateFile] = [`${folder}/key.pem`, `${folder}/certificate.pem`];
  execFileSync(
    'openssl',
    ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-subj', '/CN=localhost', '-days', '1'].concat([
      '-keyout',
      keyFile,
      '-out',
      certificateFile,
    ]),
    { stdio: 'ignore' },
  );
  const certificate = readFileSync(certificateFile, 'utf8');
  const server = createServer({ key: readFileSync(keyFile), cert: certificate }, handler);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return Object.assign(server, { certificate });
}

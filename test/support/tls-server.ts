import { readFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { createServer } from 'node:https';
import type { Server } from 'node:https';
import { makeCertificate } from './certificate.ts';
import { makeTemporaryFolder } from './temporary-folder.ts';

/** Starts an HTTPS server on loopback with a certificate that it has signed itself, for `localhost` and a day. */
export async function startTlsServer(
  handler: RequestListener,
): Promise<Server & { readonly certificate: string }> {
  const { paths, pem } = makeCertificate(makeTemporaryFolder(), { days: 1 });
  const server = createServer({ key: readFileSync(paths.key), cert: pem }, handler);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return Object.assign(server, { certificate: pem });
}

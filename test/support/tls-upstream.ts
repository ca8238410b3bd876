import { readFileSync } from 'node:fs';
import type { IncomingHttpHeaders } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { readCertificate } from './certificates.ts';
import type { Authority, CertificateFiles } from './certificates.ts';
import type { Script } from './scripted-upstream.ts';

/** A provider behind TLS that asks for client certificates. */
export interface TlsUpstream {
  readonly url: string;
  /** What it was asked: the headers, and the name in the client's certificate. */
  readonly seen: { readonly headers: IncomingHttpHeaders; readonly client: string | undefined }[];
  /** Shows another certificate from now on. */
  show(certificate: CertificateFiles): void;
  close(): Promise<void>;
}

/** Starts a provider for `localhost` that answers with a script, and accepts clients of `authority` only. */
export async function startTlsUpstream(
  certificate: CertificateFiles,
  authority: Authority,
  script: Script,
): Promise<TlsUpstream> {
  const seen: TlsUpstream['seen'] = [];
  const clients = { ca: readFileSync(authority.cert), requestCert: true, rejectUnauthorized: true };
  const server = createServer({ ...readCertificate(certificate), ...clients }, (request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString('utf8')));
    request.on('end', () => {
      const { method = '', url = '', headers } = request;
      const { subject } = (request.socket as TLSSocket).getPeerCertificate();
      seen.push({ headers, client: [subject.CN].flat()[0] });
      void script(response, { method, path: url, headers, body });
    });
  });
  server.on('tlsClientError', () => {});
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `https://localhost:${(server.address() as AddressInfo).port}/v1`,
    seen,
    show: (next) => server.setSecureContext({ ...readCertificate(next), ca: clients.ca }),
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

import { execFileSync } from 'node:child_process';
import { copyFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';

/** A certificate for `localhost` and 127.0.0.1 that has signed itself. */
export interface TestCertificate {
  readonly paths: { readonly cert: string; readonly key: string };
  /** The certificate in PEM, which is also the authority that clients have to trust. */
  readonly pem: string;
}

/** Makes a certificate with its key in a folder. */
export function makeCertificate(folder: string, { name = 'tls', days = 365 } = {}): TestCertificate {
  const paths = { cert: join(folder, `${name}.crt`), key: join(folder, `${name}.key`) };
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'];
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const files = ['-keyout', paths.key, '-out', paths.cert];
  execFileSync('openssl', ['req', '-x509', ...curve, ...subject, '-days', String(days), ...files], {
    stdio: 'ignore',
  });
  return { paths, pem: readFileSync(paths.cert, 'utf8') };
}

/** Puts the files of a certificate in the place of those of another one. */
export function replaceCertificate(old: TestCertificate, { paths }: TestCertificate): void {
  copyFileSync(paths.cert, old.paths.cert);
  copyFileSync(paths.key, old.paths.key);
}

/** Lets all clients of this process trust a certificate, `fetch` and the official SDK among them. */
export function trustCertificate({ pem }: TestCertificate): void {
  setDefaultCACertificates([...getCACertificates('default'), pem]);
}

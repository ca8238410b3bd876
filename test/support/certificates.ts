import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { makeTemporaryFolder } from './temporary-folder.ts';

/** The files of a certificate and its key, in PEM. */
export interface CertificateFiles {
  readonly cert: string;
  readonly key: string;
}

/** An authority of a test's own. */
export interface Authority extends CertificateFiles {
  /** Signs a certificate for a name. */
  issue(name: string): CertificateFiles;
}

let made = 0;

/** Makes an authority, whose certificate is valid for a day. */
export function makeAuthority(): Authority {
  const folder = makeTemporaryFolder();
  const openssl = (...options: readonly string[]) =>
    execFileSync('openssl', options, { cwd: folder, stdio: 'ignore' });
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  openssl(
    'req',
    '-x509',
    ...key,
    '-subj',
    `/CN=authority ${++made}`,
    '-days',
    '1',
    '-keyout',
    'ca.key',
    '-out',
    'ca.pem',
  );
  return {
    cert: `${folder}/ca.pem`,
    key: `${folder}/ca.key`,
    issue(name) {
      const file = `${name}-${++made}`;
      openssl('req', ...key, '-subj', `/CN=${name}`, '-keyout', `${file}.key`, '-out', `${file}.csr`);
      writeFileSync(`${folder}/${file}.cnf`, `subjectAltName=DNS:${name}\n`);
      const signed = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '1'];
      openssl(
        'x509',
        '-req',
        '-in',
        `${file}.csr`,
        ...signed,
        '-extfile',
        `${file}.cnf`,
        '-out',
        `${file}.pem`,
      );
      return { cert: `${folder}/${file}.pem`, key: `${folder}/${file}.key` };
    },
  };
}

/** What is in the files of a certificate, as servers take it. */
export function readCertificate({ cert, key }: CertificateFiles): {
  readonly cert: string;
  readonly key: string;
} {
  return { cert: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8') };
}

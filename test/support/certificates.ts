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

/** A new private key, as `openssl req` takes it. */
const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];

function openssl(folder: string, ...options: readonly string[]): void {
  execFileSync('openssl', options, { cwd: folder, stdio: 'ignore' });
}

/** Makes an authority, whose certificate is valid for a day. */
export function makeAuthority(): Authority {
  const folder = makeTemporaryFolder();
  const files = ['-keyout', 'ca.key', '-out', 'ca.pem'];
  openssl(folder, 'req', '-x509', ...newKey, '-subj', `/CN=authority ${++made}`, '-days', '1', ...files);
  return authorityIn(folder);
}

function authorityIn(folder: string): Authority {
  return {
    ...filesOf(folder, 'ca'),
    issue(name) {
      const file = `${name}-${++made}`;
      openssl(
        folder,
        'req',
        ...newKey,
        '-subj',
        `/CN=${name}`,
        '-keyout',
        `${file}.key`,
        '-out',
        `${file}.csr`,
      );
      writeFileSync(`${folder}/${file}.cnf`, `subjectAltName=DNS:${name}\n`);
      const signed = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '1'];
      const files = ['-in', `${file}.csr`, '-extfile', `${file}.cnf`, '-out', `${file}.pem`];
      openssl(folder, 'x509', '-req', ...signed, ...files);
      return filesOf(folder, file);
    },
  };
}

function filesOf(folder: string, name: string): CertificateFiles {
  return { cert: `${folder}/${name}.pem`, key: `${folder}/${name}.key` };
}

/** What is in the files of authorities, and of the certificates that they have signed, by the names in those. */
const kept = new Map<string, readonly (readonly [string, ReturnType<typeof readCertificate>])[]>();

/**
 * An authority with certificates for some names, in files of the test's own. What is in them is made once, as openssl takes a
 * process for each.
 */
export function copyAuthority<Name extends string>(names: readonly Name[]) {
  const folder = makeTemporaryFolder();
  const all = kept.get(names.join()) ?? makeCertificates(names);
  kept.set(names.join(), all);
  const copies = all.map(([name, { cert, key }]) => {
    const files = filesOf(folder, name);
    writeFileSync(files.cert, cert);
    writeFileSync(files.key, key, { mode: 0o600 });
    return [name, files] as const;
  });
  return {
    authority: authorityIn(folder),
    issued: Object.fromEntries(copies) as Record<Name, CertificateFiles>,
  };
}

function makeCertificates(names: readonly string[]) {
  const authority = makeAuthority();
  const issued = names.map((name) => [name, readCertificate(authority.issue(name))] as const);
  return [['ca', readCertificate(authority)] as const, ...issued];
}

/** What is in the files of a certificate, as servers take it. */
export function readCertificate({ cert, key }: CertificateFiles): {
  readonly cert: string;
  readonly key: string;
} {
  return { cert: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8') };
}

import { X509Certificate, createPrivateKey } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { promises, readFileSync, statSync } from 'node:fs';
import type { Stats } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { describeReadFault } from './read-fault.ts';

/** The largest file of a certificate or key, in bytes: chains have a few kilobytes. */
const maxFileBytes = 256 * 1_024;

/** Where the certificate and the key of a listener are. */
export interface TlsPaths {
  readonly cert: string;
  readonly key: string;
}

/** A certificate and its key, which belong together. */
export interface TlsFiles {
  /** In PEM, with the certificates between it and a root behind it. */
  readonly cert: string;
  /** In PEM, without a passphrase. */
  readonly key: string;
  /** When the certificate ends, in milliseconds since 1970. */
  readonly notAfterMs: number;
}

/** What is wrong with one of the two files. The message quotes neither the path nor the content. */
export class TlsFileError extends Error {
  readonly setting: keyof TlsPaths;

  constructor(setting: keyof TlsPaths, message: string) {
    super(message);
    this.name = 'TlsFileError';
    this.setting = setting;
  }
}

/** Reads both files and checks that they belong together. Throws `TlsFileError`. */
export function readTlsFiles({ cert, key }: TlsPaths): TlsFiles {
  return checkTlsFiles({ cert: readPem('cert', cert), key: readPem('key', key) });
}

/** As `readTlsFiles`, for a process that serves requests; the two are not checked yet. */
export async function readTlsFilesAgain({ cert, key }: TlsPaths): Promise<TlsPaths> {
  const [certText, keyText] = await Promise.all([readPemAgain('cert', cert), readPemAgain('key', key)]);
  return { cert: certText, key: keyText };
}

/** Checks the texts of both files. Throws `TlsFileError`. */
export function checkTlsFiles({ cert, key }: TlsPaths): TlsFiles {
  const certificate = parseCertificate(cert);
  if (!certificate.checkPrivateKey(parseKey(key)))
    throw new TlsFileError(
      'key',
      'this key does not belong to the certificate of server.tls.cert: write the files that were made together (a chain begins with the certificate of the server)',
    );
  try {
    // Finds what only a handshake needs, such as a broken certificate further down the chain.
    createSecureContext({ cert, key });
  } catch (error) {
    throw new TlsFileError('cert', `the certificate can't be used for TLS: ${reasonOf(error)}`);
  }
  return { cert, key, notAfterMs: certificate.validToDate.getTime() };
}

function parseCertificate(text: string): X509Certificate {
  if (!text.includes('-----BEGIN CERTIFICATE-----'))
    throw new TlsFileError(
      'cert',
      text.includes('PRIVATE KEY-----')
        ? 'the file holds a private key and no certificate: write its path into key'
        : 'expected a certificate in PEM, which begins with -----BEGIN CERTIFICATE-----',
    );
  try {
    return new X509Certificate(text);
  } catch (error) {
    throw new TlsFileError('cert', `the certificate can't be read: ${reasonOf(error)}`);
  }
}

function parseKey(text: string): KeyObject {
  if (/-----BEGIN ENCRYPTED |^Proc-Type: 4,ENCRYPTED/m.test(text))
    throw new TlsFileError(
      'key',
      'the key has a passphrase: write it without one, as by openssl pkey -in FILE -out NEW_FILE',
    );
  if (!text.includes('PRIVATE KEY-----'))
    throw new TlsFileError(
      'key',
      'expected a private key in PEM, which begins with -----BEGIN PRIVATE KEY-----',
    );
  try {
    return createPrivateKey(text);
  } catch (error) {
    throw new TlsFileError('key', `the key can't be read: ${reasonOf(error)}`);
  }
}

function readPem(setting: keyof TlsPaths, file: string): string {
  try {
    checkFile(setting, statSync(file));
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw describeFault(setting, error);
  }
}

async function readPemAgain(setting: keyof TlsPaths, file: string): Promise<string> {
  try {
    checkFile(setting, await promises.stat(file));
    return await promises.readFile(file, 'utf8');
  } catch (error) {
    throw describeFault(setting, error);
  }
}

/** A pipe can't be read twice, and a device may never end. */
function checkFile(setting: keyof TlsPaths, stats: Stats): void {
  if (!stats.isFile() && !stats.isDirectory()) throw new TlsFileError(setting, 'this is no regular file');
  if (stats.size > maxFileBytes)
    throw new TlsFileError(setting, `the file has more than ${maxFileBytes} bytes`);
}

function describeFault(setting: keyof TlsPaths, error: unknown): Error {
  if (error instanceof TlsFileError) return error;
  const { code } = error as NodeJS.ErrnoException;
  return new TlsFileError(setting, describeReadFault(code) ?? `the file can't be read (${code})`);
}

/** The reason that OpenSSL names, without the parts of its code that only say where it was found. */
function reasonOf(error: unknown): string {
  const { reason, message } = error as Error & { readonly reason?: string };
  return reason ?? message;
}

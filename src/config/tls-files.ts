import { X509Certificate, createPrivateKey } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { promises, readFileSync, statSync } from 'node:fs';
import type { Stats } from 'node:fs';
import { createSecureContext } from 'node:tls';
import type { z } from 'zod';
import type { Certificates } from '../domain/ports/network.ts';
import { describeReadFault } from './read-file.ts';

/** The largest file, in bytes; a bundle of all public authorities has some 230,000. */
const maxFileBytes = 1_048_576;

const settings = ['ca', 'cert', 'key'] as const;

type Setting = (typeof settings)[number];

/** The files of one side of TLS, by the names of their settings. All of them are in PEM. */
export type TlsPaths = { readonly [Name in Setting]?: string | undefined };

/** What is wrong with one of the files. The message quotes neither the path nor the content. */
export class TlsFileError extends Error {
  readonly setting: Setting;

  constructor(setting: Setting, message: string) {
    super(message);
    this.name = 'TlsFileError';
    this.setting = setting;
  }
}

/** Reads the files and checks them. Throws `TlsFileError` for the first one that can't be used. */
export function readTlsFiles(paths: TlsPaths): Certificates {
  const texts: { [Name in Setting]?: string } = {};
  for (const setting of settings) {
    const file = paths[setting];
    if (file !== undefined) texts[setting] = readPem(setting, file);
  }
  checkTlsFiles(texts);
  return texts;
}

/** Reads the files in a process that serves requests, without checking what is in them. Throws `TlsFileError`. */
export async function readTlsFilesAgain(paths: TlsPaths): Promise<Certificates> {
  const texts: { [Name in Setting]?: string } = {};
  for (const setting of settings) {
    const file = paths[setting];
    if (file !== undefined) texts[setting] = await readPemAgain(setting, file);
  }
  return texts;
}

/** Checks what is in the files, and that a key belongs to its certificate. Throws `TlsFileError`. */
export function checkTlsFiles({ ca, cert, key }: Certificates): void {
  if (ca !== undefined) parseCertificates('ca', ca);
  const [own] = cert === undefined ? [] : parseCertificates('cert', cert);
  const parsed = key === undefined ? null : parseKey(key);
  if (own !== undefined && parsed !== null && !own.checkPrivateKey(parsed))
    throw new TlsFileError(
      'key',
      'this key does not belong to the certificate of cert: write the files that were made together (a chain begins with the certificate itself, and its authorities follow)',
    );
  try {
    // Finds what only a handshake needs, such as a key that is too short.
    createSecureContext({
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined ? {} : { cert, key }),
    });
  } catch (error) {
    throw new TlsFileError(
      cert === undefined ? 'ca' : 'cert',
      `it can't be used for TLS: ${reasonOf(error)}`,
    );
  }
}

/** When the first certificate of a checked text ends, in milliseconds since 1970. */
export function certificateEndMs(cert: string): number {
  return new X509Certificate(cert).validToDate.getTime();
}

const certificate = /-----BEGIN (?:TRUSTED )?CERTIFICATE-----[^-]+-----END (?:TRUSTED )?CERTIFICATE-----/g;

/** OpenSSL silently skips certificates that it can't read, so each of them is read before. */
function parseCertificates(setting: Setting, text: string): readonly X509Certificate[] {
  const found = text.match(certificate);
  if (found === null)
    throw new TlsFileError(
      setting,
      text.includes('PRIVATE KEY-----')
        ? 'the file holds a private key and no certificate: write its path into key'
        : 'expected a certificate in PEM, which begins with -----BEGIN CERTIFICATE-----',
    );
  try {
    return found.map((one) => new X509Certificate(one));
  } catch (error) {
    throw new TlsFileError(setting, `a certificate of the file can't be read: ${reasonOf(error)}`);
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

function readPem(setting: Setting, file: string): string {
  try {
    checkFile(setting, statSync(file));
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw describeFault(setting, error);
  }
}

async function readPemAgain(setting: Setting, file: string): Promise<string> {
  try {
    checkFile(setting, await promises.stat(file));
    return await promises.readFile(file, 'utf8');
  } catch (error) {
    throw describeFault(setting, error);
  }
}

/** A pipe can't be read twice, and a device may never end. */
function checkFile(setting: Setting, stats: Stats): void {
  if (!stats.isFile() && !stats.isDirectory()) throw new TlsFileError(setting, 'this is no regular file');
  if (stats.size > maxFileBytes)
    throw new TlsFileError(setting, `the file has more than ${maxFileBytes} bytes`);
}

function describeFault(setting: Setting, error: unknown): Error {
  if (error instanceof TlsFileError) return error;
  const { code } = error as NodeJS.ErrnoException;
  return new TlsFileError(setting, describeReadFault(code) ?? `the file can't be read (${code})`);
}

/** Refuses files of a config that can't be used. */
export function refineTlsFiles(paths: TlsPaths, context: z.core.$RefinementCtx): void {
  try {
    readTlsFiles(paths);
  } catch (error) {
    if (!(error instanceof TlsFileError)) throw error;
    context.addIssue({ code: 'custom', path: [error.setting], message: error.message });
  }
}

/** The reason that OpenSSL names, without the parts of its code that only say where it was found. */
function reasonOf(error: unknown): string {
  const { reason, message } = error as Error & { readonly reason?: string };
  return reason ?? message;
}

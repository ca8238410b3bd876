import { X509Certificate } from 'node:crypto';
import { promises, readFileSync, statSync } from 'node:fs';
import type { Stats } from 'node:fs';
import { createSecureContext } from 'node:tls';
import type { Certificates } from '../domain/ports/certificates.ts';
import { describeReadFault } from './read-fault.ts';

/** The files of an upstream's TLS, by the names of their settings. */
export interface CertificateFiles {
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}

/** What is wrong with one of the files; `setting` is `ca`, `cert` or `key`. */
export class CertificateFileError extends Error {
  readonly setting: string;

  constructor(setting: string, message: string) {
    super(message);
    this.name = 'CertificateFileError';
    this.setting = setting;
  }
}

/** The largest file of certificates, in bytes; a bundle of all public authorities has some 230,000. */
const maxFileBytes = 1_048_576;

const settings = ['ca', 'cert', 'key'] as const;

/** Reads the files. Throws `CertificateFileError` for the first one that can't be used; it quotes neither contents nor paths. */
export function readCertificateFiles(files: CertificateFiles): Certificates {
  const texts: Record<string, string> = {};
  for (const setting of settings) {
    const file = files[setting];
    if (file === undefined) continue;
    texts[setting] = withSetting(setting, () => {
      checkFile(statSync(file));
      return readFileSync(file, 'utf8');
    });
  }
  return checked(texts);
}

/** As `readCertificateFiles`, for a process that serves requests. */
export async function readCertificateFilesAgain(files: CertificateFiles): Promise<Certificates> {
  const texts: Record<string, string> = {};
  for (const setting of settings) {
    const file = files[setting];
    if (file === undefined) continue;
    try {
      checkFile(await promises.stat(file));
      texts[setting] = await promises.readFile(file, 'utf8');
    } catch (error) {
      throw asFileError(setting, error);
    }
  }
  return checked(texts);
}

function withSetting<Result>(setting: string, work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    throw asFileError(setting, error);
  }
}

function asFileError(setting: string, error: unknown): CertificateFileError {
  const { code, message } = error as NodeJS.ErrnoException;
  const isSystems = code !== undefined;
  const reason = isSystems ? (describeReadFault(code) ?? `the file can't be used (${code})`) : message;
  return new CertificateFileError(setting, reason);
}

/** A pipe can't be read twice, and a device may never end. */
function checkFile(stats: Stats): void {
  if (!stats.isFile()) throw new Error('this is no regular file');
  if (stats.size > maxFileBytes) throw new Error(`the file has more than ${maxFileBytes} bytes`);
}

const certificate = /-----BEGIN (?:TRUSTED )?CERTIFICATE-----[^-]+-----END (?:TRUSTED )?CERTIFICATE-----/g;

/** OpenSSL silently skips certificates that it can't read, so each of them is read before. */
function checked(texts: Certificates): Certificates {
  for (const setting of ['ca', 'cert'] as const) {
    const text = texts[setting];
    if (text === undefined) continue;
    withSetting(setting, () => {
      const found = text.match(certificate) ?? [];
      if (found.length === 0)
        throw new Error('the file has no certificate in PEM (-----BEGIN CERTIFICATE-----)');
      return found.map((one) => new X509Certificate(one));
    });
  }
  withSetting(texts.key === undefined ? 'ca' : 'key', () => createSecureContext({ ...texts }));
  return texts;
}

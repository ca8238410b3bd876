import { isDeepStrictEqual } from 'node:util';
import { atSetting } from '../config/problem.ts';
import { checkTlsFiles, readTlsFilesAgain } from '../config/tls-files.ts';
import type { TlsPaths } from '../config/tls-files.ts';
import type { Certificates } from '../domain/ports/network.ts';

/**
 * Reads of files that others replace: each returns what two reads in a row have found last, at first `first`. A file may be
 * half written at one read, and half of a key or of a chain of certificates can look like a whole one. The value stays the same
 * object while it is equal.
 */
export function settledReads<Value>(first: Value, read: () => Promise<Value>): () => Promise<Value> {
  let settled = first;
  let last = first;
  return async () => {
    const found = await read();
    if (isDeepStrictEqual(found, last) && !isDeepStrictEqual(found, settled)) settled = found;
    last = found;
    return settled;
  };
}

/**
 * Reads of the files of certificates, whose settings are at a path of the config: each returns the last ones that can be used,
 * at first `first`, and rejects, with the setting at fault, while those in the files can't. What may be half replaced counts when
 * it is the same at the next look, as other certificates or as a fault.
 */
export function settledCertificates<Files extends Certificates>(
  first: Files,
  paths: TlsPaths,
  path: readonly string[],
): () => Promise<Files> {
  let used = first;
  const readFiles = settledReads(first, async () => (await readTlsFilesAgain(paths)) as Files);
  return async () => {
    try {
      const found = await readFiles();
      if (isDeepStrictEqual(found, used)) return used;
      checkTlsFiles(found);
      return (used = found);
    } catch (error) {
      throw atSetting(path, error);
    }
  };
}

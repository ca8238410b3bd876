import { isPostgresUrl, readPostgresUrl } from '../shared/postgres-url.ts';
import { readAt } from './problem.ts';
import { readSecretFile } from './secret-file.ts';

const sqlite = /^sqlite:.+$/;

/** What is wrong with the URL of a database; `null` if nothing is. It is not quoted: it may hold a password. */
export function describeDatabaseUrl(text: string): string | null {
  if (sqlite.test(text)) return null;
  if (!isPostgresUrl(text))
    return 'expected sqlite: and a file, such as sqlite:data/textgate.db, or postgres://user@host:5432/database';
  const read = readPostgresUrl(text);
  return read.kind === 'fault' ? `the URL ${read.message}` : null;
}

/**
 * Reads the URL of a database from a file. Throws with the reason, which quotes neither the URL nor the path: a URL may
 * have been written in its place.
 */
export function readDatabaseUrlFile(file: string): string {
  const url = readSecretFile(file);
  const fault = describeDatabaseUrl(url);
  if (fault !== null) throw new Error(fault);
  return url;
}

/** Whether the database of a config may be shared with other nodes. Throws if the file of its URL can't be read. */
export function isSharedDatabase(url: string | { readonly file: string }): boolean {
  return isPostgresUrl(readDatabaseUrl(url));
}

/** The URL of the database of a config, as it is now where a file has it. Throws if that file can't be read. */
export function readDatabaseUrl(url: string | { readonly file: string }): string {
  return typeof url === 'string'
    ? url
    : readAt(['storage', 'url', 'file'], () => readDatabaseUrlFile(url.file));
}

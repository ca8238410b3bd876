import { StorageError } from '../../domain/storage-refusal.ts';
import type { StorageReason } from '../../domain/storage-refusal.ts';

/** By PostgreSQL's error codes; a code that is not listed has the reason of its class. */
const reasonByCode: ReadonlyMap<string, StorageReason> = new Map([
  ['25006', 'read_only'],
  ['40001', 'locked'],
  ['40P01', 'locked'],
  ['53100', 'full'],
  ['55P03', 'locked'],
  ['57014', 'slow'],
]);

/** By the class of a code, its first two characters (https://www.postgresql.org/docs/current/errcodes-appendix.html). */
const reasonByClass: ReadonlyMap<string, StorageReason> = new Map([
  ['08', 'unavailable'],
  ['22', 'rejected'],
  ['23', 'rejected'],
  ['25', 'rejected'],
  ['42', 'rejected'],
  ['53', 'unavailable'],
  ['57', 'unavailable'],
  ['58', 'io'],
]);

/** An error of a connection or of the database, as the store reports it. */
export function storageErrorOf(error: unknown): StorageError {
  if (error instanceof StorageError) return error;
  if (!(error instanceof Error)) return new StorageError(String(error), 'unknown');
  const { code, message } = error as NodeJS.ErrnoException;
  return new StorageError(message === '' ? (code ?? error.name) : message, reasonOf(code));
}

/** An error without a code of PostgreSQL comes from the connection. */
function reasonOf(code: string | undefined): StorageReason {
  if (code === undefined || !/^[0-9A-Z]{5}$/.test(code)) return 'unavailable';
  return reasonByCode.get(code) ?? reasonByClass.get(code.slice(0, 2)) ?? 'unknown';
}

/** Whether a database refuses a connection for good: a wrong password or role, or no such database. */
export function isRefusedForGood(error: unknown): boolean {
  const code = error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
  return code !== undefined && /^(28...|3D000|42501)$/.test(code);
}

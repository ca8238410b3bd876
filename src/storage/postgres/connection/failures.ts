import { DatabaseError } from 'pg';
import { StorageError } from '../../../domain/storage-refusal.ts';
import type { StorageReason } from '../../../domain/storage-refusal.ts';
import type { ConnectionTarget } from './connection-target.ts';

/** By PostgreSQL's error codes; a code that is not listed has the reason of its class. */
const reasonByCode: ReadonlyMap<string, StorageReason> = new Map([
  // "cannot set transaction read-write mode during recovery": the server is a standby.
  ['0A000', 'read_only'],
  ['25006', 'read_only'],
  ['25P03', 'slow'],
  ['26000', 'unavailable'],
  ['40001', 'locked'],
  ['40P01', 'locked'],
  // A missing right, table, function or column is for the operator to mend. Taken for a fault of the values of a unit,
  // it would have settlements given up.
  ['42501', 'unknown'],
  ['42703', 'unknown'],
  ['42883', 'unknown'],
  ['42P01', 'unknown'],
  ['42P05', 'unavailable'],
  ['53100', 'full'],
  ['55P03', 'locked'],
  ['57014', 'slow'],
]);

/**
 * By the class of a code, its first two characters (https://www.postgresql.org/docs/current/errcodes-appendix.html). Only a
 * fault of a unit's own values is `rejected`: a settlement that is rejected is not offered again. What a pooler answers
 * for a server that is away (08P01) and the state of a connection (class 25) are no such faults.
 */
const reasonByClass: ReadonlyMap<string, StorageReason> = new Map([
  ['08', 'unavailable'],
  ['22', 'rejected'],
  ['23', 'rejected'],
  ['28', 'unavailable'],
  ['3D', 'unavailable'],
  ['42', 'rejected'],
  ['53', 'unavailable'],
  // A text that is too long for an index, a list that is too long for a statement.
  ['54', 'rejected'],
  ['55', 'unavailable'],
  ['57', 'unavailable'],
  ['58', 'io'],
]);

/** An error that the database answered, with its code. */
export class AnsweredError extends StorageError {
  readonly code: string;

  constructor(message: string, code: string) {
    super(message, reasonByCode.get(code) ?? reasonByClass.get(code.slice(0, 2)) ?? 'unknown');
    this.code = code;
  }
}

/** A pooler gives each transaction any of its sessions. */
export class SharedSessionError extends StorageError {
  constructor() {
    super(
      'a pooler gives each transaction another session: set pool_mode = session for this database in PgBouncer (what other poolers call session mode), or name the server itself in storage.url',
    );
  }
}

/** A statement that this session has prepared is not there, or one that it has not is: a pooler has changed the session. */
export function isOfOtherSession(error: StorageError): boolean {
  return error instanceof AnsweredError && ['26000', '42P05'].includes(error.code);
}

/** How often a unit is repeated before it is rejected. */
const maxRepeats = 3;

/**
 * A serialization failure and a deadlock: the database has undone the whole unit for the sake of another one. No other
 * error says so, and a unit whose connection was lost may have been done.
 */
const undoneCodes: ReadonlySet<string> = new Set(['40001', '40P01']);

/** Runs a unit, and runs it again when the database has undone it for the sake of another one. */
export async function repeatUnit<Done>(unit: () => Promise<Done>): Promise<Done> {
  for (let repeats = 0; ; repeats++)
    try {
      return await unit();
    } catch (error) {
      const isUndone = error instanceof AnsweredError && undoneCodes.has(error.code);
      if (!isUndone || repeats === maxRepeats) throw error;
    }
}

/** An error of a connection or of the database, as the store reports it. */
export function storageErrorOf(error: unknown): StorageError {
  if (error instanceof StorageError) return error;
  if (!(error instanceof Error)) return new StorageError(String(error), 'unknown');
  if (error instanceof DatabaseError && error.code !== undefined)
    return new AnsweredError(error.message, error.code);
  // All others come from the connection.
  return new StorageError(error.message === '' ? (codeOf(error) ?? error.name) : error.message);
}

/** The code of an error: PostgreSQL's five characters, or Node's word. */
function codeOf(error: unknown): string | undefined {
  const code = error instanceof Error ? (error as Error & { readonly code?: unknown }).code : undefined;
  return typeof code === 'string' ? code : undefined;
}

/** Whether a connection is refused for good: a wrong password or role, no such database, or a pooler's shared sessions. */
export function isRefusedForGood(error: unknown): boolean {
  if (error instanceof SharedSessionError) return true;
  const code = codeOf(error);
  if (code === undefined) return error instanceof Error && isFaultOfPassword(error.message);
  return /^(28...|3D000|42501)$/.test(code);
}

/** What pg says when it has no password for a server that asks for one, or can't prove that it has it. */
function isFaultOfPassword(message: string): boolean {
  return message.startsWith('SASL: ');
}

const correctAddress = 'start the server, or correct the host and port in storage.url';
const correctCertificate =
  'correct sslrootcert and the host in storage.url, or the certificate of the server';

/** The code of a server, database or role that has as many connections as it may. */
const tooManyConnections = '53300';

/** What an operator can do, by the code of the error: PostgreSQL's five characters, or Node's word. */
const adviceByCode: ReadonlyMap<string, string> = new Map([
  [
    '28000',
    "add the user to the server, or the user, database and this machine's address to its pg_hba.conf",
  ],
  ['3D000', 'create the database on the server, or correct its name in storage.url'],
  ['42501', 'grant the user of storage.url what it lacks: CONNECT on the database, CREATE on its schema'],
  ['42P07', 'name a database in storage.url that nothing else uses'],
  ['ECONNREFUSED', correctAddress],
  ['ENOENT', correctAddress],
  ['EHOSTUNREACH', correctAddress],
  ['ENETUNREACH', correctAddress],
  ['ENOTFOUND', 'correct the host in storage.url'],
  ['EAI_AGAIN', 'correct the host in storage.url, or look at the name server of this machine'],
  ['CERT_HAS_EXPIRED', 'renew the certificate of the server'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', correctCertificate],
  ['ERR_TLS_CERT_ALTNAME_INVALID', correctCertificate],
  ['SELF_SIGNED_CERT_IN_CHAIN', correctCertificate],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', correctCertificate],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', correctCertificate],
]);

/** What to do about a database that can't be opened, to be written behind the error; nothing where that is not known. */
export function adviceOn(error: unknown, { hasPassword }: Pick<ConnectionTarget, 'hasPassword'>): string {
  const code = codeOf(error) ?? '';
  const advice =
    adviceOnPassword(error, code, hasPassword) ?? adviceByCode.get(code) ?? adviceOnWords(error, code);
  return advice === null ? '' : `: ${advice}`;
}

/** The error of a connection that can't be opened or was lost, for the operator. */
export function explainUnreachable(error: unknown, target: ConnectionTarget): StorageError {
  const { message, reason } = storageErrorOf(error);
  // pg has no password to prove, and says so in the words of its protocol.
  const isWithoutPassword = !target.hasPassword && isFaultOfPassword(message);
  const what = isWithoutPassword ? 'the server asks for a password, and there is none' : message;
  return new StorageError(
    `the database ${target.name} can't be reached: ${what}${adviceOn(error, target)}`,
    reason,
  );
}

/** What to do about a password that the server does not take; `null` for other faults. pg's own have no codes. */
function adviceOnPassword(error: unknown, code: string, hasPassword: boolean): string | null {
  if (code === '28P01')
    return hasPassword
      ? 'correct the user and the password in storage.url'
      : 'write a password into storage.url, or correct its user';
  if (!(error instanceof Error) || !isFaultOfPassword(error.message)) return null;
  return hasPassword ? 'correct the password in storage.url' : 'write a password into storage.url';
}

function adviceOnWords(error: unknown, code: string): string | null {
  const message = error instanceof Error ? error.message : '';
  if (code === tooManyConnections) return adviceOnLimit(message);
  if (/SSL/.test(message)) return 'turn on ssl on the server, or remove sslmode from storage.url';
  return null;
}

/** A role and a database have limits of their own, which only the words tell apart; they may be in another language. */
function adviceOnLimit(message: string): string {
  const raise = /for role/.test(message)
    ? "raise the role's limit (ALTER ROLE … CONNECTION LIMIT …)"
    : /for database/.test(message)
      ? "raise the database's limit (ALTER DATABASE … CONNECTION LIMIT …)"
      : 'raise max_connections of the server, or the CONNECTION LIMIT of the role or the database';
  return `${raise}, or stop what else uses it`;
}

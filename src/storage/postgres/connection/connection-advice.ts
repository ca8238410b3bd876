import { StorageError } from '../../../domain/storage-refusal.ts';
import type { ConnectionTarget } from './connection-target.ts';
import { codeOf, isFaultOfPassword, storageErrorOf } from './failure-reason.ts';

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

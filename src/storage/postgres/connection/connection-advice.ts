import { StorageError } from '../../../domain/storage-refusal.ts';
import type { ConnectionTarget } from './connection-target.ts';
import { codeOf, isFaultOfPassword, storageErrorOf } from './failure-reason.ts';

const correctAddress = 'start the server, or correct the host and port in storage.url';
const correctCertificate =
  'correct sslrootcert and the host in storage.url, or the certificate of the server';

/** What an operator can do, by the code of the error: PostgreSQL's five characters, or Node's word. */
const adviceByCode: ReadonlyMap<string, string> = new Map([
  [
    '28000',
    "add the user to the server, or the user, database and this machine's address to its pg_hba.conf",
  ],
  ['28P01', 'correct the user and the password in storage.url'],
  ['3D000', 'create the database on the server, or correct its name in storage.url'],
  ['42501', 'grant the user of storage.url what it lacks: CONNECT on the database, CREATE on its schema'],
  ['53300', 'raise max_connections of the server, or stop what else uses it'],
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
  const advice = adviceByCode.get(codeOf(error) ?? '') ?? adviceOnWords(error, hasPassword);
  return advice === null ? '' : `: ${advice}`;
}

/** The error of a connection that can't be opened or was lost, for the operator. */
export function explainUnreachable(error: unknown, target: ConnectionTarget): StorageError {
  const { message, reason } = storageErrorOf(error);
  return new StorageError(
    `the database ${target.name} can't be reached: ${message}${adviceOn(error, target)}`,
    reason,
  );
}

/** pg's own errors have no codes. */
function adviceOnWords(error: unknown, hasPassword: boolean): string | null {
  const message = error instanceof Error ? error.message : '';
  if (isFaultOfPassword(message))
    return hasPassword ? 'correct the password in storage.url' : 'write a password into storage.url';
  if (/SSL/.test(message)) return 'turn on ssl on the server, or remove sslmode from storage.url';
  return null;
}

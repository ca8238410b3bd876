import { readFileSync } from 'node:fs';
import type { ClientConfig } from 'pg';
import { StorageError } from '../../../domain/storage-refusal.ts';
import { readPostgresUrl } from '../../../shared/postgres-url.ts';
import type { PostgresUrl, TlsFile } from '../../../shared/postgres-url.ts';

/** Where a database is, and its name for messages, which has no password. */
export interface ConnectionTarget {
  readonly config: Readonly<Pick<ClientConfig, 'host' | 'port' | 'user' | 'password' | 'database' | 'ssl'>>;
  readonly hasPassword: boolean;
  readonly name: string;
}

/**
 * Reads the URL of a database, and the certificates that it names. Throws a `StorageError` when it is no such URL; its
 * message quotes nothing that may be part of a password.
 *
 * All that says which database is opened, and as whom, is in the URL. pg would complete it from `PGUSER`, `PGPASSWORD`,
 * `PGOPTIONS`, `PGSSLMODE`, … and from `~/.pgpass`: what is left out of the URL would then differ from one shell to the
 * next. So every such value is set here or by the session, and none of those is used.
 */
export function readTarget(text: string): ConnectionTarget {
  const url = readPostgresUrl(text);
  if (url.kind === 'fault') throw wrong(url.message);
  const { host, port, user, password, database, name } = url;
  return {
    // pg takes an empty password for none, and looks for one elsewhere; it does not with a function.
    config: { host, port, user, password: () => password, database, ssl: readTls(url) },
    hasPassword: password !== '',
    name,
  };
}

function readTls({ tlsMode, tlsFiles }: PostgresUrl): NonNullable<ClientConfig['ssl']> {
  if (tlsMode === 'disable') return false;
  const read = (name: TlsFile): string | undefined => readPem(name, tlsFiles[name]);
  const [ca, cert, key] = [read('sslrootcert'), read('sslcert'), read('sslkey')];
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    rejectUnauthorized: tlsMode !== 'require' || ca !== undefined,
    ...(tlsMode === 'verify-full' ? {} : { checkServerIdentity: () => undefined }),
  };
}

function readPem(name: TlsFile, path: string | null): string | undefined {
  if (path === null) return undefined;
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw wrong(`has an ${name} that can't be read: ${(error as Error).message}`);
  }
}

function wrong(what: string): StorageError {
  return new StorageError(`storage.url ${what}`);
}

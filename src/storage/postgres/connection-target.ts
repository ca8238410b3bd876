import { readFileSync } from 'node:fs';
import type { ClientConfig } from 'pg';
import { StorageError } from '../../domain/storage-refusal.ts';

/** Where a database is, and its name for messages, which has no password. */
export interface ConnectionTarget {
  readonly config: Readonly<Pick<ClientConfig, 'host' | 'port' | 'user' | 'password' | 'database' | 'ssl'>>;
  readonly hasPassword: boolean;
  readonly name: string;
}

const defaultPort = 5432;

/** The parameters of a URL that are read; any other would be a setting that nothing follows. */
const parameters = ['sslmode', 'sslrootcert', 'sslcert', 'sslkey'] as const;

/** As in libpq: `require` encrypts, `verify-ca` also checks who signed the certificate, `verify-full` also its host. */
const tlsModes = ['disable', 'require', 'verify-ca', 'verify-full'] as const;

/**
 * Reads `postgres://user:password@host:port/database?sslmode=…`; a host that begins with `%2F` is the folder of a Unix
 * socket. Throws a `StorageError` when it is no such URL; its message quotes nothing that may be part of a password.
 *
 * All that says which database is opened, and as whom, is in the URL. pg would complete it from `PGUSER`, `PGPASSWORD`,
 * `PGOPTIONS`, `PGSSLMODE`, … and from `~/.pgpass`: what is left out of the URL would then differ from one shell to the
 * next. So every such value is set here or by the session, and none of those is used.
 */
export function readTarget(text: string): ConnectionTarget {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^postgres(ql)?:$/.test(url.protocol))
    throw wrong('is no URL of a PostgreSQL database: postgres://user@host:5432/database');
  const user = decode(url.username);
  const password = decode(url.password);
  const host = decode(url.hostname).replace(/^\[(.+)\]$/, '$1');
  const database = decode(url.pathname.slice(1));
  // A password that is not encoded ends at such a character: what follows it would be taken for a host or a database.
  if (url.pathname.slice(1).includes('/') || url.hash !== '')
    throw wrong('has a "/", "#" or "?" that is not encoded: write %2F, %23 and %3F in a user or a password');
  for (const [part, value] of Object.entries({ user, host, database }))
    if (value === '') throw wrong(`has no ${part}: postgres://user@host:5432/database`);
  const ssl = readTls(url.searchParams);
  const port = url.port === '' ? defaultPort : Number(url.port);
  return {
    // pg takes an empty password for none, and looks for one elsewhere; it does not with a function.
    config: { host, port, user, password: () => password, database, ssl },
    hasPassword: password !== '',
    name: `postgres://${url.username}@${url.host}${url.pathname}`,
  };
}

function readTls(given: URLSearchParams): NonNullable<ClientConfig['ssl']> {
  if ([...given.keys()].some((name) => !parameters.some((known) => known === name)))
    throw wrong(`may have the parameters ${parameters.join(', ')}, and no others`);
  const fallback = given.size === 0 ? 'disable' : 'verify-full';
  const mode = tlsModes.find((known) => known === (given.get('sslmode') ?? fallback));
  if (mode === undefined) throw wrong(`has an sslmode that is none of ${tlsModes.join(', ')}`);
  if (mode === 'disable') return false;
  const [ca, cert, key] = ['sslrootcert', 'sslcert', 'sslkey'].map((name) => readPem(name, given.get(name)));
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    rejectUnauthorized: mode !== 'require' || ca !== undefined,
    ...(mode === 'verify-full' ? {} : { checkServerIdentity: () => undefined }),
  };
}

function readPem(name: string, path: string | null): string | undefined {
  if (path === null) return undefined;
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw wrong(`has an ${name} that can't be read: ${(error as Error).message}`);
  }
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw wrong('has a "%" that is not encoded: write %25');
  }
}

function wrong(what: string): StorageError {
  return new StorageError(`storage.url ${what}`);
}

import { decodePart } from './decode-part.ts';

/** What is read from the URL of a PostgreSQL database. */
export interface PostgresUrl {
  readonly kind: 'url';
  readonly host: string;
  readonly port: number;
  readonly user: string;
  /** Empty for none. */
  readonly password: string;
  readonly database: string;
  readonly tlsMode: TlsMode;
  /** The paths of the certificates and the key that the URL names. */
  readonly tlsFiles: Readonly<Record<TlsFile, string | null>>;
  /** The URL for messages, without password and parameters. */
  readonly name: string;
}

/** What is wrong with a URL, to be written behind what is named by it. Quotes nothing that may be part of a password. */
interface UrlFault {
  readonly kind: 'fault';
  readonly message: string;
}

const defaultPort = 5432;

const tlsFiles = ['sslrootcert', 'sslcert', 'sslkey'] as const;

export type TlsFile = (typeof tlsFiles)[number];

/** The parameters of a URL that are read; any other would be a setting that nothing follows. */
const parameters: readonly string[] = ['sslmode', ...tlsFiles];

/** As in libpq: `require` encrypts, `verify-ca` also checks who signed the certificate, `verify-full` also its host. */
const tlsModes = ['disable', 'require', 'verify-ca', 'verify-full'] as const;

type TlsMode = (typeof tlsModes)[number];

/** Whether a text is meant as the URL of a PostgreSQL database, whatever faults it may have. */
export function isPostgresUrl(text: string): boolean {
  return /^postgres(ql)?:/i.test(text.trim());
}

/**
 * Reads `postgres://user:password@host:port/database?sslmode=…`; a host that begins with `%2F` is the folder of a Unix
 * socket.
 */
export function readPostgresUrl(text: string): PostgresUrl | UrlFault {
  const read = readParts(text);
  // A name or a password that is not encoded ends the URL's user there: what is missing then is not the fault.
  return read.kind === 'fault' && hasRawDelimiter(text) ? fault(notEncoded) : read;
}

function readParts(text: string): PostgresUrl | UrlFault {
  const url = URL.parse(text);
  if (url === null || !/^postgres(ql)?:$/.test(url.protocol))
    return fault('is no URL of a PostgreSQL database: postgres://user@host:5432/database');
  const user = decodePart(url.username);
  const password = decodePart(url.password);
  const host = decodePart(url.hostname)?.replace(/^\[(.+)\]$/, '$1') ?? null;
  const database = decodePart(url.pathname.slice(1));
  if (user === null || password === null || host === null || database === null)
    return fault('has a "%" that is not encoded: write %25');
  // A password that is not encoded ends at such a character: what follows it would be taken for a host or a database.
  if (/[/@]/.test(url.pathname.slice(1)) || url.hash !== '') return fault(notEncoded);
  for (const [part, value] of Object.entries({ user, host, database }))
    if (value === '') return fault(`has no ${part}: postgres://user@host:5432/database`);
  const given = url.searchParams;
  if ([...given.keys()].some((name) => !parameters.includes(name)))
    return fault(`may have the parameters ${parameters.join(', ')}, and no others`);
  const asked = given.get('sslmode') ?? (given.size === 0 ? 'disable' : 'verify-full');
  const tlsMode = tlsModes.find((known) => known === asked);
  if (tlsMode === undefined) return fault(`has an sslmode that is none of ${tlsModes.join(', ')}`);
  const [sslrootcert = null, sslcert = null, sslkey = null] = tlsFiles.map((name) => given.get(name));
  return {
    kind: 'url',
    host,
    port: url.port === '' ? defaultPort : Number(url.port),
    user,
    password,
    database,
    tlsMode,
    tlsFiles: { sslrootcert, sslcert, sslkey },
    name: `postgres://${url.username}@${url.host}${url.pathname}`,
  };
}

const notEncoded =
  'has a "/", "?", "#" or "@" that is not encoded: write %2F, %3F, %23 and %40 in a user, a password or the name of a database';

/** Whether a character that ends the user and the password stands before the "@" that should end them. */
function hasRawDelimiter(text: string): boolean {
  const behindScheme = text.slice(text.indexOf('://') + '://'.length);
  // The values of parameters may have such characters.
  const withoutParameters = behindScheme.replace(/^([^/?#]*@[^/?#]*\/[^/?#]*)\?[a-z_]+=.*$/s, '$1');
  return /[/?#].*@/s.test(withoutParameters);
}

function fault(message: string): UrlFault {
  return { kind: 'fault', message };
}

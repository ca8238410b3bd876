import { z } from 'zod';
import { formatByteSize } from '../../shared/byte-size.ts';
import { duration, networkOr, refuseBy } from '../../shared/schema-values.ts';
import { defaultHost, defaultPort } from '../default-addresses.ts';
import { refineTlsFiles } from '../tls-files.ts';
import { listenHost } from './address-values.ts';
import { byteSize, maxWorkers, port, trueOrFalse, wholeNumber } from './values.ts';

/** The longest path that the address of a unix socket holds on all systems, in bytes. */
const maxSocketPathBytes = 103;

/** The certificate and the key of the listener for clients; both are read to see that they can be used together. */
const tls = z
  .strictObject({
    cert: z
      .string()
      .min(1)
      .meta({
        description:
          'The path of the certificate in PEM, relative to the working directory, with the chain behind it. Both files are read again every 2 s.',
        examples: ['/etc/textgate/tls.crt'],
      }),
    key: z
      .string()
      .min(1)
      .meta({
        description: 'The path of its private key in PEM, without a passphrase.',
        examples: ['/etc/textgate/tls.key'],
      }),
  })
  .superRefine(refineTlsFiles);

/** The path of a unix socket. */
const socketPath = z
  .string()
  .refine(
    (path) => /^\/?[^/\0]+(\/[^/\0]+)*$/.test(path) && !path.startsWith('unix:'),
    'expected the path of a file, such as /run/textgate/textgate.sock',
  )
  .refine(
    (path) => Buffer.byteLength(path) <= maxSocketPathBytes,
    `expected a path of at most ${maxSocketPathBytes} bytes: the system takes no longer one`,
  );

/** The permissions of a unix socket, in octal digits: the users who may write to it may connect. */
const socketMode = z
  .string()
  .regex(/^0?[67][0-7]{2}$/, "expected octal permissions in quotes that let the owner write, such as '660'");

/** The path below which the listener for clients has its paths. */
const basePath = z
  .string()
  .regex(
    /^(\/(?!\.\.?(\/|$))[A-Za-z0-9._~-]+)+$/,
    "expected a path such as /llm, without a slash at its end and without '.' or '..' as a segment",
  )
  .refine(
    (path) => !path.endsWith('/v1'),
    'leave out the /v1 at the end: it follows the base path, as in /llm/v1/models',
  );

/** The bounds of the deadlines of connections, in milliseconds. */
const leastMs = 100;
const mostMs = 3_600_000;

/** The bounds of the size of a head, in bytes: a key and the usual headers fit, and each connection may hold one in memory. */
const leastHeadBytes = 4_096;
const mostHeadBytes = 262_144;

const deadline = duration.refine(
  (milliseconds) => milliseconds >= leastMs && milliseconds <= mostMs,
  'expected a duration from 100ms to 1h',
);

/** How long the clients of both listeners may take. */
const connectionDeadlines = z
  .strictObject({
    head: deadline.prefault('10s').describe('The longest time for the head of a request to arrive.'),
    request: deadline
      .prefault('30s')
      .describe(
        'The longest time for a whole request to arrive, without the time in which the gateway does not read it; not less than `head`.',
      ),
    unread: deadline
      .prefault('30s')
      .describe(
        'How long a client may leave its answer unread; four times as long once a megabyte was sent on the connection.',
      ),
    idle: deadline
      .prefault('65s')
      .describe(
        'How long a connection with a valid key is kept open between two requests: longer than a balancer in front keeps it. Others are kept for 5 s at most.',
      ),
  })
  .refine(({ head, request }) => head <= request, {
    path: ['head'],
    message: 'expected no more than `request`, which includes it',
  });

/** The largest head of a request. */
const headSize = byteSize.refine(
  (bytes) => bytes >= leastHeadBytes && bytes <= mostHeadBytes,
  `expected a size from ${formatByteSize(leastHeadBytes)} to ${formatByteSize(mostHeadBytes)}`,
);

/** The names of networks that every machine has, as Express' `trust proxy` has them, but for `private`. */
const namedNetworks: ReadonlyMap<string, readonly string[]> = new Map([
  ['loopback', ['127.0.0.0/8', '::1']],
  ['linklocal', ['169.254.0.0/16', 'fe80::/10']],
  ['private', ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7']],
]);

/** The most proxies and origins: a request may be compared with all of them. */
const maxEntries = 64;

/** The proxies in front of the gateway: networks, or the names of some. */
const trustedProxies = z
  .array(
    networkOr(...namedNetworks.keys()).refine(
      (text) => !text.endsWith('/0'),
      'every client would be a trusted proxy, and could claim any address: list the proxies alone',
    ),
  )
  .max(maxEntries);

/** The networks of such a list, with those that the names stand for. */
export function networksOf(proxies: readonly string[]): readonly string[] {
  return proxies.flatMap((text) => namedNetworks.get(text) ?? [text]);
}

const expectedOrigin = 'expected an origin such as https://app.example.com';

/** The origin of a web page, exactly as browsers send it. */
const origin = z.string().superRefine(refuseBy(describeOriginFault));

function describeOriginFault(text: string): string | null {
  if (text === '*') return null;
  if (text === 'null') return `${expectedOrigin}: null is the origin of any local file and sandboxed frame`;
  if (text.includes('*')) return `${expectedOrigin}: a star stands for every origin, and is written alone`;
  const url = URL.parse(text);
  if (!/^[a-z][a-z0-9+.-]*:\/\/[^/?#\s]/i.test(text) || url === null)
    return `${expectedOrigin}, with its scheme`;
  if (url.username !== '' || url.password !== '') return `${expectedOrigin}, without a user and password`;
  // The schemes of apps, such as `capacitor:`, have no origin in the standard, but a form of their own.
  const exact = url.origin === 'null' ? `${url.protocol}//${url.host}` : url.origin;
  return text === exact ? null : `expected the origin as browsers send it: write ${exact}`;
}

/** The web pages that may call the gateway from browsers. */
const corsOrigins = z
  .array(origin)
  .max(maxEntries)
  .refine(
    (origins) => origins.length < 2 || !origins.includes('*'),
    "expected '*' alone: it stands for every origin",
  );

/** The longest line on where to ask for a key, in characters. */
const maxContactLength = 200;

/** Where to ask for a key: one line of text, or an address. */
const contact = z
  .string()
  .trim()
  .min(1)
  .max(maxContactLength)
  .regex(/^[^\p{Cc}\p{Cf}]*$/u, 'expected one line of text');

/** The listener for clients, and how the process ends. */
export const server = z.strictObject({
  host: listenHost
    .default(defaultHost)
    .describe('The address of the listener for clients; `0.0.0.0` is every network of the machine.'),
  port: port
    .default(defaultPort)
    .describe('The port of the listener for clients; the system chooses one for 0.'),
  socket: socketPath.optional().meta({
    description:
      'The path of a unix socket that takes the place of `host` and `port`, relative to the working directory.',
    examples: ['/run/textgate/textgate.sock'],
  }),
  socketMode: socketMode
    .default('660')
    .describe('The permissions of the unix socket: the users who may write to it may connect.'),
  tls: tls.optional().meta({
    description: 'The certificate with which the listener for clients speaks HTTPS; it is HTTP without one.',
    examples: [{ cert: '/etc/textgate/tls.crt', key: '/etc/textgate/tls.key' }],
  }),
  basePath: basePath.optional().meta({
    description:
      'The path below which the listener for clients has all of its paths, such as `/llm/v1/models`.',
    examples: ['/llm'],
  }),
  workers: z
    .union([z.literal('auto'), wholeNumber(1, maxWorkers)])
    .default(1)
    .meta({
      description: `The processes that serve both ports; \`auto\` is one for each core. More than one need a PostgreSQL database. At most ${maxWorkers}.`,
      examples: [4, 'auto'],
    }),
  maxHead: headSize
    .prefault('16KiB')
    .describe("The largest head of a request: its first line and headers. Also the operators' listener's."),
  maxBody: byteSize.prefault('1MiB').describe('The largest body of a request.'),
  timeouts: connectionDeadlines
    .prefault({})
    .describe("How long clients may take. Also those of the operators' listener."),
  drain: duration
    .prefault('25s')
    .describe('How long running requests may take to finish when the service shuts down.'),
  shutdownDelay: duration
    .prefault('0s')
    .describe(
      'How long requests are still taken after SIGTERM while `/readyz` answers 503, so that a balancer stops sending them; `drain` begins after it.',
    ),
  maxConnections: wholeNumber(1)
    .optional()
    .meta({
      description: "The most open connections; default: derived from the process's limit of open files.",
      examples: [1_000],
    }),
  maxAnonymousPerAddress: wholeNumber(1)
    .optional()
    .meta({
      description:
        'The most connections of one address on which no valid key was presented; default: half of `maxConnections`, from 16 to 1024.',
      examples: [64],
    }),
  trustedProxies: trustedProxies.default([]).meta({
    description:
      'The proxies in front of the gateway, whose `X-Forwarded-For` is believed: addresses, networks, `loopback`, `private` or `linklocal`.',
    examples: [['loopback', '10.0.0.0/8']],
  }),
  logAddresses: trueOrFalse.optional().meta({
    description:
      "Whether the client's address is in the log and the traces of each request; default: yes if `trustedProxies` names a proxy, else no.",
    examples: [true],
  }),
  corsOrigins: corsOrigins.default([]).meta({
    description:
      'The web pages that may call the gateway from browsers, by their origins; `*` is all of them.',
    examples: [['https://app.example.com']],
  }),
  importedKeys: trueOrFalse
    .default(false)
    .describe(
      'Whether keys of another gateway that were imported by their hash may be used. A wrong key that begins with `sk-` costs a look-up then.',
    ),
  contact: contact.optional().meta({
    description:
      'Where to ask for a key, on the page that people see who open the address in a browser: a text, or an `https:` or `mailto:` address.',
    examples: ['mailto:llm-team@example.com'],
  }),
});

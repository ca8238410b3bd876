import { z } from 'zod';
import { duration } from '../../shared/schema-values.ts';
import { defaultHost, defaultPort } from '../default-addresses.ts';
import { listenHost } from './address-values.ts';
import { contact, corsOrigins, trustedProxies } from './client-values.ts';
import { connectionDeadlines, headSize } from './edge-schema.ts';
import { basePath, socketMode, socketPath, tls } from './listener-schema.ts';
import { byteSize, maxWorkers, port, trueOrFalse, wholeNumber } from './values.ts';

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
  contact: contact.optional().meta({
    description:
      'Where to ask for a key, on the page that people see who open the address in a browser: a text, or an `https:` or `mailto:` address.',
    examples: ['mailto:llm-team@example.com'],
  }),
});

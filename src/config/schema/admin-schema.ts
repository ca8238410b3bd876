import { z } from 'zod';
import { valueKinds } from '../../shared/schema-values.ts';
import { minTokenLength } from '../admin-token.ts';
import { defaultAdminPort, defaultHost } from '../default-addresses.ts';
import { listenHost } from './address-values.ts';
import { port } from './values.ts';

/** The most names of the admin listener. */
const maxHosts = 32;

/** A token of our own listeners: blanks around it come from a mounted secret; a Bearer header can't hold blanks within it. */
export const bearerToken = z
  .string()
  .trim()
  .min(minTokenLength)
  .regex(/^[\x21-\x7e]*$/, 'expected printable ASCII without blanks')
  .register(valueKinds, { kind: 'secret' });

/** A name of the listener, as browsers write it into `Host`: the port is the client's own concern. */
const hostName = z
  .string()
  .regex(
    /^([a-z0-9_-]+(\.[a-z0-9_-]+)*|\[[\da-f:.]+\])$/i,
    'expected a host name without scheme and port, such as gateway.internal, or an IPv6 address in brackets',
  )
  .toLowerCase();

/** The listener for operators. */
export const admin = z
  .strictObject({
    host: listenHost
      .default(defaultHost)
      .describe('The address of the listener for operators: metrics, probes, the admin API and the console.'),
    port: port
      .default(defaultAdminPort)
      .describe('The port of the listener for operators; the system chooses one for 0.'),
    token: bearerToken.optional().meta({
      description: `The Bearer token of the admin API, of ${minTokenLength} characters or more; default: generated in the file \`admin-token\`, in the folder of \`tokenFolder\`. Nodes of one PostgreSQL database need the same one: give it to all of them, or a \`tokenFolder\` that they share.`,
      examples: ['${ADMIN_TOKEN}'],
    }),
    tokenFolder: z
      .string()
      .min(1, 'expected the path of a folder')
      .optional()
      .meta({
        description:
          'The folder of a generated token, relative to the working directory; default: that of the SQLite database, or with PostgreSQL that of the config file.',
        examples: ['/var/lib/textgate'],
      }),
    readOnlyToken: bearerToken.optional().meta({
      description: `A second token, of ${minTokenLength} characters or more, that reads what is below \`/admin\`, but for the backup, and changes nothing; default: none.`,
      examples: ['${ADMIN_READ_ONLY_TOKEN}'],
    }),
    hosts: z
      .array(hostName)
      .max(maxHosts)
      .default([])
      .meta({
        description:
          "The names by which browsers reach the listener, beside loopback names and the listener's own address: the console answers under no other `Host`.",
        examples: [['gateway.internal']],
      }),
  })
  .refine(({ token, readOnlyToken }) => token === undefined || token !== readOnlyToken, {
    path: ['readOnlyToken'],
    message: 'expected another token than that of admin.token: this one must not change anything',
  });

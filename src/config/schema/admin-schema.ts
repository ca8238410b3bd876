import { z } from 'zod';
import { readName, valueKinds } from '../../shared/schema-values.ts';
import { minTokenLength } from '../admin-token.ts';
import { defaultAdminPort, defaultHost } from '../default-addresses.ts';
import { listenHost } from './address-values.ts';
import { port, trueOrFalse } from './values.ts';

/** The most names of the admin listener. */
const maxHosts = 32;

/** The most tokens with a name, and the longest name, in characters. */
const maxTokens = 32;
const maxTokenName = 64;

/** The names of the tokens that have none of their own: their settings. */
export const adminTokenSetting = 'admin.token';
const readOnlyTokenSetting = 'admin.readOnlyToken';

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

/** A token of one person or one program. */
const namedToken = z.strictObject({
  name: readName
    .max(maxTokenName)
    .refine(
      (name) => name !== adminTokenSetting && name !== readOnlyTokenSetting,
      `expected another name than ${adminTokenSetting} and ${readOnlyTokenSetting}: tokens without a name are called so`,
    )
    .meta({ description: 'The name, as the audit shows it.', examples: ['ada'] }),
  token: bearerToken.meta({
    description: `The Bearer token, of ${minTokenLength} characters or more.`,
    examples: ['${ADAS_TOKEN}'],
  }),
  readOnly: trueOrFalse.default(false).describe('Whether it only reads, as `readOnlyToken` does.'),
});

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
    tokens: z
      .array(namedToken)
      .max(maxTokens)
      .default([])
      .meta({
        description:
          'Tokens of the admin API with names, beside the two above: the audit says whose a change was. A login with one opens a session of its name.',
        examples: [[{ name: 'ada', token: '${ADAS_TOKEN}' }]],
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
  .superRefine((section, context) => {
    const [names, tokens] = [new Set<string>(), new Set([section.token])];
    for (const { path, name, token } of otherTokensOf(section)) {
      if (tokens.has(token)) context.addIssue({ code: 'custom', path, message: sameToken });
      if (names.has(name))
        context.addIssue({
          code: 'custom',
          path: [...path.slice(0, -1), 'name'],
          message: 'another token has this name',
        });
      tokens.add(token);
      names.add(name);
    }
  });

const sameToken = 'expected another token than that of admin.token and all others: it tells who does what';

/** The tokens of a config beside `admin.token`, each with its name and where it is in the section. */
export function otherTokensOf({ readOnlyToken, tokens }: OwnTokens) {
  const second = {
    path: ['readOnlyToken'],
    name: readOnlyTokenSetting,
    token: readOnlyToken,
    readOnly: true,
  };
  const named = tokens.map(({ name, token, readOnly }, at) => {
    return { path: ['tokens', at, 'token'], name, token, readOnly };
  });
  return [second, ...named].flatMap(({ token, ...other }) =>
    token === undefined ? [] : [{ token, ...other }],
  );
}

/** What a config says of tokens beside `admin.token`. */
interface OwnTokens {
  readonly readOnlyToken?: string | undefined;
  readonly tokens: readonly z.output<typeof namedToken>[];
}

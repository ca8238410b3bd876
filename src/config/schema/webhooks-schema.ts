import { z } from 'zod';
import { eventTypes } from '../../domain/events.ts';
import { isLinkLocal } from '../../shared/link-local.ts';
import { duration, readUnless, refuseBy, valueKinds } from '../../shared/schema-values.ts';
import { noProxy, upstreamProxy } from './proxy-values.ts';
import { tlsTowards } from './tls-schema.ts';
import { describeSurroundings } from './values.ts';

/** How many webhooks a config may have: each event may have a delivery for every one of them. */
const maxWebhooks = 16;

/** How many notices there may be of one expiry. */
const maxNotices = 8;

/** The bounds of the time for which an upstream must be down, in milliseconds: a circuit is open for 5 s before each trial. */
const leastDownMs = 10_000;
const mostDownMs = 86_400_000;

/** How many secrets a webhook may have at a time: the one in use, and the one that replaces it. */
const maxSecrets = 2;

/** The shortest secret, in characters. */
const leastSecretLength = 16;

/** The prefix of secrets in the form of Standard Webhooks: the rest is the key in base64. */
const standardPrefix = 'whsec_';

const expectedUrl = 'expected an address such as https://hooks.example/textgate';

/** The address of a receiver, read into a `URL`. It may hold a secret, so that none of the messages quotes it. */
const webhookUrl = z
  .string()
  .trim()
  .transform(readUnless(describeUrlFault, (text) => new URL(text)))
  .register(valueKinds, { kind: 'url' });

function describeUrlFault(text: string): string | null {
  const url = URL.parse(text);
  if (url === null || !/^https?:\/\//i.test(text) || /\s/.test(text)) return expectedUrl;
  if (url.username !== '' || url.password !== '')
    return 'expected an address without a user and password: the signature says who has sent an event';
  if (text.includes('#')) return 'expected an address without # and what follows it';
  return isLinkLocal(url.hostname)
    ? "a link-local address, where clouds serve a machine's credentials: events are not sent there"
    : null;
}

/** The secret of the signatures. */
const signingSecret = z
  .string()
  .trim()
  .min(leastSecretLength, `expected ${leastSecretLength} characters or more: a shorter secret can be guessed`)
  .regex(/^[\x20-\x7e]*$/, 'expected printable ASCII')
  .superRefine(refuseBy(describeSurroundings))
  .refine(
    (text) => !text.startsWith(standardPrefix) || isWholeBase64(text.slice(standardPrefix.length)),
    `expected ${standardPrefix} and 16 bytes or more in base64, such as those of: openssl rand -base64 32`,
  )
  .register(valueKinds, { kind: 'secret' });

/** Whether a text is base64 of 16 bytes or more with its padding: receivers' libraries refuse to decode any other. */
function isWholeBase64(text: string): boolean {
  return text.length % 4 === 0 && /^[A-Za-z0-9+/]{22,}={0,2}$/.test(text);
}

const signingSecrets = z.array(signingSecret).min(1).max(maxSecrets);

const webhookName = z
  .string()
  .regex(/^[A-Za-z0-9._-]{1,64}$/, 'expected a name of 1 to 64 letters, digits, dots, hyphens or underscores')
  // In the path of an admin route, a client resolves them.
  .refine((name) => name !== '.' && name !== '..', 'expected a name with a letter or a digit');

const webhook = z
  .strictObject({
    url: webhookUrl.meta({
      description: 'Where events are sent, by POST. Redirects are not followed.',
      examples: ['https://hooks.example/textgate'],
    }),
    secret: z.union([signingSecret, signingSecrets]).meta({
      description: `The secret of the signatures, usually a reference to an environment variable: \`${standardPrefix}\` and 16 bytes or more in base64, or any other text of ${leastSecretLength} characters or more. A list of ${maxSecrets}, while one replaces the other: each event is signed by both.`,
      examples: ['${WEBHOOK_SECRET}'],
    }),
    events: z
      .array(z.enum(eventTypes))
      .min(1)
      .default([...eventTypes])
      .meta({
        description: 'The types of events that are sent; default: all.',
        examples: [['balance.low', 'key.expiring']],
      }),
    proxy: upstreamProxy.optional().meta({
      description: 'The HTTP proxy through which it is reached, or `none`; default: as for upstreams.',
      examples: ['http://proxy.example:3128', noProxy],
    }),
    tls: tlsTowards('receiver')
      .optional()
      .meta({
        description:
          'How the certificate of the receiver is verified, and the one that is sent to it. The files are read again every 2 s.',
        examples: [{ ca: '/etc/textgate/authority.pem' }],
      }),
  })
  .refine(({ url, tls }) => tls === undefined || url.protocol === 'https:', {
    path: ['tls'],
    message: 'expected only where the url begins with https://: leave it out, or correct the url',
  })
  .meta({ examples: [{ url: 'https://hooks.example/textgate', secret: '${WEBHOOK_SECRET}' }] });

/** The receivers of events, by name. */
export const webhooks = z
  .record(webhookName, webhook)
  .refine((all) => Object.keys(all).length <= maxWebhooks, `expected ${maxWebhooks} webhooks or less`);

/** When events come that the gateway itself watches for. */
export const events = z.strictObject({
  keyExpiring: z
    .array(duration.refine((milliseconds) => milliseconds >= 60_000, 'expected 1m or more'))
    .max(maxNotices)
    .prefault(['7d', '1d'])
    .describe('How long before the expiry of a key `key.expiring` comes: once for each of these times.'),
  upstreamDown: duration
    .refine(
      (milliseconds) => milliseconds >= leastDownMs && milliseconds <= mostDownMs,
      'expected a duration from 10s to 1d',
    )
    .prefault('30s')
    .describe(
      'How long the circuit of an upstream is open before `upstream.down` comes, and how long it is closed again before `upstream.up` does.',
    ),
});

import { z } from 'zod';
import { duration, refuseBy } from '../../shared/schema-values.ts';
import { minTokenLength } from '../admin-token.ts';
import { refineTlsFiles } from '../tls-files.ts';
import { bearerToken } from './admin-schema.ts';
import { listenHost } from './address-values.ts';
import { port } from './values.ts';
import type { ResumeSettings } from '../../pipeline/claims/running-claims.ts';

/** The longest grace of a request, and the longest time for which an answer is kept, in milliseconds. */
const maxGraceMs = 300_000;
const maxReplayMs = 600_000;

/** A duration of at most some minutes. */
const upTo = (maxMs: number) => duration.refine((ms) => ms <= maxMs, `expected at most ${maxMs / 60_000}m`);

/** The listener on which other processes of the gateway ask for answers that only this one has in memory. */
const nodes = z.strictObject({
  host: listenHost.superRefine(refuseBy(describeWildcard)).meta({
    description:
      'The address at which the other nodes reach this one: a name or an IP address of its own, on which it listens.',
    examples: ['10.0.0.7'],
  }),
  port: port
    .default(0)
    .describe(
      'The port of that listener; for 0 the system chooses one, which the others find in the database.',
    ),
  token: bearerToken.meta({
    description: `The Bearer token by which the nodes of one database know each other, of ${minTokenLength} characters or more: the same for all of them.`,
    examples: ['${NODES_TOKEN}'],
  }),
  tls: z
    .strictObject({
      cert: z
        .string()
        .min(1)
        .meta({
          description:
            'The path of the certificate of the listener in PEM, with the chain behind it; read at the start.',
          examples: ['/etc/textgate/nodes.crt'],
        }),
      key: z
        .string()
        .min(1)
        .meta({
          description: 'The path of its private key in PEM, without a passphrase.',
          examples: ['/etc/textgate/nodes.key'],
        }),
      ca: z
        .string()
        .min(1)
        .optional()
        .meta({
          description:
            'A file with the certificates, in PEM, of the authorities that may sign those of the nodes; default: `cert`.',
          examples: ['/etc/textgate/nodes-authority.pem'],
        }),
    })
    .superRefine(refineTlsFiles)
    .optional()
    .describe('What the nodes speak to each other is encrypted with; default: it is not.'),
});

/** Each node writes the host into the database, for the others. */
function describeWildcard(host: string): string | null {
  return /^(0\.0\.0\.0|\[?[0:]+\]?)$/.test(host)
    ? 'expected an address of this node alone, by which the others reach it, such as 10.0.0.7'
    : null;
}

/** Requests that clients name with an `Idempotency-Key`. */
export const resume = z.strictObject({
  grace: upTo(maxGraceMs)
    .prefault('10s')
    .describe(
      'How long a request with an `Idempotency-Key` goes on after its last client has left, at most 5m: a client that comes back within this time gets the whole answer.',
    ),
  replay: upTo(maxReplayMs)
    .prefault('2m')
    .describe(
      'How long the answer to such a request is kept in memory after its end, at most 10m: who asks again gets it once more, without a charge.',
    ),
  nodes: nodes
    .optional()
    .describe(
      'How the nodes of one PostgreSQL database pass on to each other who asks for an answer that another one has; default: they do not. The workers of a node do so without it.',
    ),
});

/** What a config says of such requests. */
export function resumeSettingsOf({ grace, replay }: z.output<typeof resume>): ResumeSettings {
  return { graceMs: grace, replayMs: replay };
}

import { z } from 'zod';
import { refineTlsFiles } from '../tls-files.ts';

const pemFile = z.string().min(1).optional();

/** How the TLS connections to one kind of servers are verified. Verification can't be turned off. */
export function tlsTowards(side: 'upstream' | 'receiver') {
  return z
    .strictObject({
      ca: pemFile.meta({
        description: `A file with the certificates, in PEM, of the authorities that may sign that of the ${side}, in place of those that the system trusts.`,
        examples: ['/etc/textgate/authority.pem'],
      }),
      cert: pemFile.meta({
        description: `A file with the certificate, in PEM, by which the ${side} recognises this gateway, and those between it and its authority.`,
        examples: ['/etc/textgate/client.pem'],
      }),
      key: pemFile.meta({
        description: 'The file with the key of `cert`, in PEM and not encrypted.',
        examples: ['/etc/textgate/client.key'],
      }),
      serverName: z
        .string()
        .regex(/^[A-Za-z0-9._-]+$/, 'expected a host name')
        .optional()
        .meta({
          description: `The name that the certificate of the ${side} must have; default: the host of \`url\`.`,
          examples: ['model.internal'],
        }),
    })
    .superRefine((files, context) => {
      if ((files.cert === undefined) !== (files.key === undefined)) {
        const path = [files.cert === undefined ? 'cert' : 'key'];
        context.addIssue({ code: 'custom', path, message: 'cert and key go together: set this one, too' });
        return;
      }
      refineTlsFiles(files, context);
    });
}

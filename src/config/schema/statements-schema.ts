import { z } from 'zod';
import { readStatementKey } from '../statement-key.ts';

/** How statements are signed. */
export const statements = z
  .strictObject({
    key: z
      .string()
      .min(1)
      .optional()
      .meta({
        description:
          'The path of the private key that signs statements, of Ed25519 in PEM, relative to the working directory. Default: a key that is made at the first statement and kept in the database.',
        examples: ['/etc/textgate/statements.pem'],
      }),
  })
  .superRefine(({ key }, context) => {
    if (key === undefined) return;
    try {
      readStatementKey(key);
    } catch (error) {
      context.addIssue({ code: 'custom', path: ['key'], message: (error as Error).message });
    }
  });

import { z } from 'zod';
import { refineTlsFiles } from '../tls-files.ts';

/** The longest path that the address of a unix socket holds on all systems, in bytes. */
const maxSocketPathBytes = 103;

/** The certificate and the key of the listener for clients; both are read to see that they can be used together. */
export const tls = z
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
export const socketPath = z
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
export const socketMode = z
  .string()
  .regex(/^0?[67][0-7]{2}$/, "expected octal permissions in quotes that let the owner write, such as '660'");

/** The path below which the listener for clients has its paths. */
export const basePath = z
  .string()
  .regex(
    /^(\/(?!\.\.?(\/|$))[A-Za-z0-9._~-]+)+$/,
    "expected a path such as /llm, without a slash at its end and without '.' or '..' as a segment",
  )
  .refine(
    (path) => !path.endsWith('/v1'),
    'leave out the /v1 at the end: it follows the base path, as in /llm/v1/models',
  );

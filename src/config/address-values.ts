import { z } from 'zod';
import { valueKinds } from '../shared/schema-values.ts';

/** The address of an upstream, read into a `URL`. */
export const upstreamUrl = z
  .string()
  .transform((text, context) => {
    const url = URL.parse(text);
    if (url !== null && ['http:', 'https:', 'demo:'].includes(url.protocol) && isPlain(url)) return url;
    context.issues.push({
      code: 'custom',
      input: text,
      message:
        'expected an address such as http://127.0.0.1:8000/v1, without a password, or demo: for the built-in demo',
    });
    return z.NEVER;
  })
  .register(valueKinds, { kind: 'url' });

/** Whether a URL has neither a password nor a fragment: they would not be sent, although the config suggests it. */
function isPlain({ hash, username, password }: URL): boolean {
  return hash === '' && username === '' && password === '';
}

/** Headers of the connection and of the body, which the gateway or its HTTP client sets itself. */
const ownHeaders =
  /^(host|connection|keep-alive|transfer-encoding|te|trailer|upgrade|expect|content-.*|accept|accept-encoding)$/;

/** The name of a header that is sent with every call to an upstream, read in lower case. */
export const headerName = z
  .string()
  .regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/, 'expected a header name')
  .toLowerCase()
  .refine((name) => !ownHeaders.test(name), 'the gateway sets this header itself');

/** The value of a header that is sent with every call to an upstream; it may be a secret. */
export const headerValue = z
  .string()
  .regex(/^[\t\x20-\x7e]*$/, 'expected printable ASCII')
  .register(valueKinds, { kind: 'secret' });

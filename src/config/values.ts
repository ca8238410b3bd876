import { z } from 'zod';
import { parseByteSize } from '../shared/byte-size.ts';
import { duration } from '../shared/schema-values.ts';

/** A size such as `64KiB`, read into bytes. */
export const byteSize = z.string().transform((text, context) => {
  const bytes = parseByteSize(text);
  if (bytes !== null) return bytes;
  context.issues.push({ code: 'custom', input: text, message: 'expected a size such as 64KiB or 1MiB' });
  return z.NEVER;
});

/** A whole number. A string of digits counts as one, because a value from the environment is text. */
export function wholeNumber(min: number, max: number = Number.MAX_SAFE_INTEGER) {
  return z.preprocess(readDigits, z.int().min(min).max(max)) as unknown as z.ZodType<number, number>;
}

function readDigits(value: unknown): unknown {
  return typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
}

/** A TCP port; the system chooses one for 0. */
export const port = wholeNumber(0, 65_535);

/** The address of an upstream, read into a `URL`. */
export const upstreamUrl = z.string().transform((text, context) => {
  const url = URL.parse(text);
  if (url !== null && ['http:', 'https:', 'demo:'].includes(url.protocol) && isPlain(url)) return url;
  context.issues.push({
    code: 'custom',
    input: text,
    message:
      'expected an address such as http://127.0.0.1:8000/v1, without a password, or demo: for the built-in demo',
  });
  return z.NEVER;
});

/** Whether a URL has neither a password nor a fragment: they would not be sent, although the config suggests it. */
function isPlain({ hash, username, password }: URL): boolean {
  return hash === '' && username === '' && password === '';
}

/** Headers of the connection and of the body, which the gateway or its HTTP client sets itself. */
const ownHeaders =
  /^(host|connection|keep-alive|transfer-encoding|te|trailer|upgrade|expect|content-.*|accept|accept-encoding)$/;

/** The name of a header that is sent with every call to an upstream. */
export const headerName = z
  .string()
  .toLowerCase()
  .regex(/^[a-z0-9!#$%&'*+.^_`|~-]+$/, 'expected a header name')
  .refine((name) => !ownHeaders.test(name), 'the gateway sets this header itself');

/** The value of a header that is sent with every call to an upstream. */
export const headerValue = z.string().regex(/^[\t\x20-\x7e]*$/, 'expected printable ASCII');

/** The name of a model, in which one `*` matches any text. */
export const namePattern = z
  .string()
  .regex(/^[^*]*\*?[^*]*$/, "expected a name with at most one '*'")
  .min(1);

/** A duration above zero; a zero timeout would fail every call. */
export const positiveDuration = duration.refine((milliseconds) => milliseconds > 0, 'expected more than 0');

/** A secret that is sent in a header. A mounted secret often ends with a line feed, which is trimmed. */
export const secret = z
  .string()
  .trim()
  .min(1)
  .regex(/^[\t\x20-\x7e]*$/, 'expected printable ASCII');

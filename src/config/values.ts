import { z } from 'zod';
import { parseByteSize } from '../shared/byte-size.ts';
import { duration } from '../shared/schema-values.ts';

export const byteSize = z.string().transform((text, context) => {
  const bytes = parseByteSize(text);
  if (bytes !== null) return bytes;
  context.issues.push({ code: 'custom', input: text, message: 'expected a size such as 64KiB or 1MiB' });
  return z.NEVER;
});

/** Digits count as a number, because a value taken from the environment is text. */
export function wholeNumber(min: number, max: number = Number.MAX_SAFE_INTEGER) {
  return z.preprocess(readDigits, z.int().min(min).max(max)) as unknown as z.ZodType<number, number>;
}

function readDigits(value: unknown): unknown {
  return typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
}

export const port = wholeNumber(0, 65_535);

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

/** A password would not be sent, nor would a fragment, and what is not sent must not look as if it were. */
function isPlain({ hash, username, password }: URL): boolean {
  return hash === '' && username === '' && password === '';
}

/** Headers that belong to the connection and to the body: they are set by whatever sends them. */
const ownHeaders =
  /^(host|connection|keep-alive|transfer-encoding|te|trailer|upgrade|expect|content-.*|accept|accept-encoding)$/;

/** The name of a header for every call to an upstream. */
export const headerName = z
  .string()
  .toLowerCase()
  .regex(/^[a-z0-9!#$%&'*+.^_`|~-]+$/, 'expected the name of a header')
  .refine((name) => !ownHeaders.test(name), 'this header is set by the gateway itself');

export const headerValue = z.string().regex(/^[\t\x20-\x7e]*$/, 'expected printable ASCII');

/** A model's name, in which one `*` may stand for anything. */
export const namePattern = z
  .string()
  .regex(/^[^*]*\*?[^*]*$/, "expected a name with one '*' at the most")
  .min(1);

/** A span of time that is one: nothing can be done in none. */
export const positiveDuration = duration.refine((milliseconds) => milliseconds > 0, 'expected more than 0');

/** A key as it goes into a header; a mounted secret often ends in a line feed, which is not part of it. */
export const secret = z
  .string()
  .trim()
  .min(1)
  .regex(/^[\t\x20-\x7e]*$/, 'expected printable ASCII');

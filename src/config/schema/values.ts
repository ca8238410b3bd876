import { z } from 'zod';
import { parseByteSize } from '../../shared/byte-size.ts';
import {
  duration,
  maxLimit,
  storedText,
  valueKinds,
  wholeNumberWithin,
  readBy,
  refuseBy,
  within,
} from '../../shared/schema-values.ts';
import { formatShare, parseShare } from '../../shared/share.ts';

/** A size above zero such as `64KiB`, read into bytes. */
export const byteSize = z
  .string()
  .transform(
    readBy(
      (text) => within(parseByteSize(text), 1, Number.MAX_SAFE_INTEGER),
      () => 'expected a size above 0 such as 64KiB or 1MiB',
    ),
  )
  .register(valueKinds, { kind: 'size' });

/** A whole number. A string of digits counts as one, because a value from the environment is text. */
export function wholeNumber(min: number, max: number = Number.MAX_SAFE_INTEGER) {
  return z.preprocess(readDigits, wholeNumberWithin(min, max)) as unknown as z.ZodType<number, number>;
}

/** A share as a percentage such as `5%`, or as a number from 0 to 1, read into the latter. */
export const share = z
  .preprocess(
    (value) => (typeof value === 'number' ? String(value) : value),
    z.string().transform(readBy(parseShare, whyNoShare)),
  )
  .register(valueKinds, { kind: 'share' }) as unknown as z.ZodType<number, number | string>;

/** What is wrong with a share, and what to write instead. A number above 1 may be meant as a percentage. */
function whyNoShare(text: string): string {
  const meant = parseShare(`${text.trim()}%`);
  return meant === null
    ? 'expected a percentage from 0% to 100%, such as 5%, or the same as a number from 0 to 1, such as 0.05'
    : `neither a percentage nor a number from 0 to 1: write ${formatShare(meant)} or ${meant}`;
}

/** A limit of requests, of a key or of all keys. */
export const requestLimit = wholeNumber(1, maxLimit);

function readDigits(value: unknown): unknown {
  return typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
}

/** A switch. The texts `true` and `false` count as one, because a value from the environment is text. */
export const trueOrFalse = z.preprocess(readSwitch, z.boolean()) as unknown as z.ZodType<boolean, boolean>;

/** A switch that can only be on: left out, it is off. */
export const onlyTrue = z.preprocess(
  readSwitch,
  z.literal(true, 'expected true: leave the key out otherwise'),
) as unknown as z.ZodType<true, true>;

function readSwitch(value: unknown): unknown {
  return value === 'true' ? true : value === 'false' ? false : value;
}

/** The most workers: each has connections of its own to the database, and a file of its own in the folder of spools. */
export const maxWorkers = 32;

/** A TCP port; the system chooses one for 0. */
export const port = wholeNumber(0, 65_535);

/** The name of an upstream or a model, which is stored in records. */
export const chosenName = storedText
  .min(1, 'expected a name that is not empty')
  .refine((name) => !/[^\P{Cc}\0]/u.test(name), 'expected a name without control characters');

/** The name of a model, in which one `*` matches any text. */
export const namePattern = storedText.regex(/^[^*]*\*?[^*]*$/, "expected a name with at most one '*'").min(1);

/** A duration above zero; a zero timeout would fail every call. */
export const positiveDuration = duration.refine((milliseconds) => milliseconds > 0, 'expected more than 0');

/** A secret that is sent in a header. A mounted secret often ends with a line feed, which is trimmed. */
export const secret = z
  .string()
  .trim()
  .min(1)
  .regex(/^[\t\x20-\x7e]*$/, 'expected printable ASCII')
  .superRefine(refuseBy(describeSurroundings))
  .register(valueKinds, { kind: 'secret' });

/** The path of a file, which is read to see that it can be used. */
export function readableFile(read: (file: string) => unknown) {
  return z
    .string()
    .min(1)
    .superRefine((file, context) => {
      try {
        read(file);
      } catch (error) {
        context.addIssue({ code: 'custom', message: error instanceof Error ? error.message : String(error) });
      }
    });
}

/** What is around a secret and no part of it, and how to write the secret; `null` for a secret alone. It is not quoted. */
export function describeSurroundings(given: string): string | null {
  const text = given.trim();
  if (text.length > 1 && /^(["'`]).*\1$/s.test(text))
    return 'the quotes at both ends would be a part of it: leave them out (an --env-file and a file of a key have none)';
  // Sent as a key, it would be "Bearer Bearer …".
  return /^bearer\s/i.test(text) ? 'expected the key alone, without Bearer before it' : null;
}

import { z } from 'zod';

/** A share from 0 to 1. A string of digits counts as one, because a value from the environment is text. */
const share = z.preprocess(
  (value) => (typeof value === 'string' && /^\d*\.?\d+$/.test(value) ? Number(value) : value),
  z.number().min(0).max(1),
) as unknown as z.ZodType<number, number>;

/** The second meter. */
export const metering = z.strictObject({
  sample: share.default(0).meta({
    description:
      'The share of the answers with reported usage whose tokens the gateway counts, too, to notice when an upstream counts otherwise than before; 0 is none. Counting takes a thread with 70 MB.',
    examples: [0.01],
  }),
});

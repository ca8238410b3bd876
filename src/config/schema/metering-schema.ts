import { z } from 'zod';
import { share } from './values.ts';

/** The second meter. */
export const metering = z.strictObject({
  sample: share.prefault('0%').meta({
    description:
      'The share of the answers with reported usage whose tokens the gateway counts, too, to notice when an upstream counts otherwise than before; 0% is none. Counting takes a thread with 70 MB.',
    examples: ['1%'],
  }),
});

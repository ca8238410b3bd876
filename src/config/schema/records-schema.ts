import { z } from 'zod';
import { readBy, valueKinds, within } from '../../shared/schema-values.ts';
import { parseDuration } from '../../shared/duration.ts';

/** The shortest and the longest time for which records are kept, in milliseconds: a day, and a hundred years. */
const minKeepMs = 86_400_000;
const maxKeepMs = 36_525 * minKeepMs;

/** An age of what is kept. It is compared with times, no timer has to hold it: so it may be longer than other durations. */
export const age = z
  .string()
  .transform(
    readBy(
      (text) => within(parseDuration(text), minKeepMs, maxKeepMs),
      () =>
        'expected a duration of 1d or more, such as 90d or 400d; without records.keep all records are kept',
    ),
  )
  .register(valueKinds, { kind: 'duration' });

/** How long records are kept, and where old ones go. */
export const records = z
  .strictObject({
    keep: age.optional().meta({
      description:
        'How long records of requests are kept, at least `1d`: older ones are removed, and their postings folded into one sum per key. Default: for ever.',
      examples: ['400d'],
    }),
    archive: z
      .string()
      .min(1)
      .optional()
      .meta({
        description:
          'The folder in which records are written before they are removed, as JSON lines in a file per day, relative to the working directory. Default: they are removed without a copy.',
        examples: ['data/archive'],
      }),
  })
  .refine(({ keep, archive }) => archive === undefined || keep !== undefined, {
    path: ['archive'],
    message: 'nothing is removed, and so nothing archived, without records.keep: write it, such as 400d',
  });

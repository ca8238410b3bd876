import { z } from 'zod';
import { outcomes } from '../../domain/money/consumption.ts';
import type { RecordFilter } from '../../domain/money/consumption.ts';
import type { KeyStore } from '../../domain/ports/key-store.ts';
import { refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import { instant, storedText, usd } from '../../shared/schema-values.ts';
import { endsTooEarly, wholeNumberFrom } from '../checked-input.ts';
import { findUnknownKey } from '../unknown-ids.ts';

/** The longest duration that can be asked for, in milliseconds: the largest number in the columns of durations. */
const longestMs = 2_147_483_647;

const outcomeProblem = `expected one of ${outcomes.join(', ')}`;

/** What records can be chosen by. */
export const recordFilterFields = {
  key: storedText.optional(),
  group: storedText.optional().describe('An empty one stands for the requests of keys without a group.'),
  model: storedText.optional(),
  upstream: storedText.optional().describe('The one whose answer or failure the client got.'),
  outcome: z.enum(outcomes, outcomeProblem).optional(),
  status: wholeNumberFrom(100, 599).optional(),
  cause: storedText
    .min(1, 'expected a part of a cause')
    .optional()
    .describe(
      'A part of a cause, of the code that the client got or of the outcome if it got none, or of the result, code or words of a failed call.',
    ),
  tag: storedText.optional().describe('An empty one stands for the requests without a tag.'),
  min_duration_ms: wholeNumberFrom(1, longestMs).optional(),
  max_duration_ms: wholeNumberFrom(1, longestMs).optional(),
  min_amount: usd.optional().describe('The least charge, in USD.'),
  from: instant.optional(),
  to: instant.optional(),
};

type RecordFilterQuery = z.output<z.ZodObject<typeof recordFilterFields>>;

/** The records that a query asks for; refused where there can be none, as of a key that no one has. */
export async function filterOf(
  query: RecordFilterQuery,
  keys: Pick<KeyStore, 'namesOf'>,
): Promise<RecordFilter | Refusal> {
  const { key: keyId, group, model, upstream, outcome, status, cause, tag, from, to } = query;
  const {
    min_duration_ms: minDurationMs,
    max_duration_ms: maxDurationMs,
    min_amount: minChargeNanos,
  } = query;
  if (from !== undefined && to !== undefined && to <= from) return endsTooEarly();
  if (minDurationMs !== undefined && maxDurationMs !== undefined && maxDurationMs < minDurationMs)
    return refuse('invalid_value', "Invalid 'max_duration_ms': expected 'min_duration_ms' or more.", {
      param: 'max_duration_ms',
    });
  const unknown = await findUnknownKey(keyId, keys);
  const figures = { minDurationMs, maxDurationMs, minChargeNanos };
  return unknown ?? { keyId, group, model, upstream, outcome, status, cause, tag, from, to, ...figures };
}

import { expect, test } from 'vitest';
import { z } from 'zod';
import { schemaMessage } from '../../src/shared/schema-messages.ts';

const messageOf = (schema: z.ZodType, input: unknown): string | undefined =>
  schema.safeParse(input, { error: schemaMessage }).error?.issues[0]?.message;

test.each<[z.ZodType, unknown, string]>([
  [z.string(), undefined, 'missing: expected a text'],
  [z.string(), 5, 'expected a text, not a number'],
  [z.number(), 'secret', 'expected a number, not a text'],
  [z.object({}), [], 'expected an object, not a list'],
  [z.array(z.string()), null, 'expected a list, not null'],
  [z.int(), 1.5, 'expected a whole number'],
  [z.array(z.int()).max(2), [1, 2, 3], 'expected a list of 2 or less'],
  [z.array(z.int()).min(2), [1], 'expected a list of 2 or more'],
  [z.coerce.number(), 'abc', 'expected a number, not a text'],
  [z.string().min(1), '', 'expected something'],
  [z.string().min(16), 'x', 'expected 16 characters or more'],
  [z.array(z.string()).min(1), [], 'expected at least one'],
  [z.number().min(1), 0, 'expected 1 or more'],
  [z.string().max(2), 'abc', 'expected 2 characters or less'],
  [z.enum(['a', 'b']), 'c', 'expected "a" or "b"'],
  [z.string().regex(/x/, 'our own words'), 'y', 'our own words'],
])('issue %# says what is expected, without quoting the input', (schema, input, message) => {
  expect(messageOf(schema, input)).toBe(message);
});

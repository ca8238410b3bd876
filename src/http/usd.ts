import { z } from 'zod';
import { parseUsd } from '../shared/money.ts';

/** USD in a JSON body: a decimal string, read into nano-USD. A JSON number could already have lost digits. */
export const usd = z.string().transform((text, context) => {
  const nanos = parseUsd(text);
  if (nanos !== null) return nanos;
  context.issues.push({
    code: 'custom',
    input: text,
    message: 'expected USD as a decimal string, such as "5.00"',
  });
  return z.NEVER;
});

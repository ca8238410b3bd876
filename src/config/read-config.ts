import { schemaMessage } from '../shared/schema-messages.ts';
import { describeIssue } from './describe-issue.ts';
import { discovers, unknownUpstreams } from './references.ts';
import { discovering, listing } from './schema.ts';
import type { Config } from './schema.ts';

/** Checks a config; returns it, or every problem at once, each with its path. */
export function readConfig(
  input: unknown,
): { readonly config: Config } | { readonly problems: readonly string[] } {
  const schema = discovers(input) ? discovering : listing;
  const read = schema.safeParse(input, { error: schemaMessage });
  const faults = read.error?.issues.flatMap((issue) => describeIssue(issue, schema)) ?? [];
  const problems = [...faults, ...unknownUpstreams(input)];
  return read.success && problems.length === 0 ? { config: read.data } : { problems };
}

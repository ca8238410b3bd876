import { schemaMessage } from '../shared/schema-messages.ts';
import { describeIssue } from './describe-issue.ts';
import { unknownModels, unknownUpstreams, usesDiscovery } from './references.ts';
import { discovering, listing } from './schema.ts';
import type { Config } from './schema.ts';

/** A checked config, or every problem that it has, each with its path. */
export type ConfigReading =
  | { readonly kind: 'config'; readonly config: Config }
  | { readonly kind: 'problems'; readonly problems: readonly string[] };

/** Checks a config; reports all of its problems at once. */
export function readConfig(input: unknown): ConfigReading {
  const schema = usesDiscovery(input) ? discovering : listing;
  const read = schema.safeParse(input, { error: schemaMessage });
  const faults = read.error?.issues.flatMap((issue) => describeIssue(issue, schema)) ?? [];
  const problems = [...faults, ...unknownUpstreams(input), ...unknownModels(input)];
  return read.success && problems.length === 0
    ? { kind: 'config', config: read.data }
    : { kind: 'problems', problems };
}

import { schemaMessage } from '../shared/schema-messages.ts';
import { describeIssue } from './describe-issue.ts';
import { crossChecks, usesDiscovery } from './cross-checks.ts';
import type { Problem } from './problem.ts';
import { discovering, listing } from './schema/schema.ts';
import type { Config } from './schema/schema.ts';

/** A checked config, or every problem that it has. */
export type ConfigReading =
  | { readonly kind: 'config'; readonly config: Config }
  | { readonly kind: 'problems'; readonly problems: readonly Problem[] };

/** Checks a config; reports all of its problems at once. A conflict of its listeners is found at the one that is `blamed`. */
export function readConfig(input: unknown, blamed: 'server' | 'admin' = 'admin'): ConfigReading {
  const schema = schemaOf(input);
  // A config is parsed once: compiling code for it would take longer.
  const read = schema.safeParse(input, { error: schemaMessage, jitless: true });
  const faults = read.error?.issues.flatMap((issue) => describeIssue(issue, schema, input)) ?? [];
  const problems = [...faults, ...crossChecks(input, blamed)];
  return read.success && problems.length === 0
    ? { kind: 'config', config: read.data }
    : { kind: 'problems', problems };
}

/** The schema by which a config is read: whether its models are listed or discovered. */
export function schemaOf(input: unknown): typeof listing | typeof discovering {
  return usesDiscovery(input) ? discovering : listing;
}

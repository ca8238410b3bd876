import { nameOf } from '../../domain/audit/safe-text.ts';
import type { SafeText } from '../../domain/audit/safe-text.ts';

/** The parts of the paths of routes below `/admin` that stand in them as they are. */
const parts = new Set(
  (
    'keys import rotate credits statement groups records failures latency usage audit archive removals folds webhooks ' +
    'deliveries events resend test status history upstreams doctor shadow in-flight cancel try chat completions responses ' +
    'models ledger roots backup'
  ).split(' '),
);

/** The most parts of a path in a line: two more than any route has. */
const maxParts = 6;

/**
 * What a request asked for, with `:id` in place of each part of the path that is none of a route's: it may be a secret, as
 * where a key is given in place of its id.
 */
export function templateOf(method: string, path: string): SafeText {
  const given = path.split('/', maxParts + 1).slice(1);
  const told = given.map((part) =>
    part === '' || parts.has(part.toLowerCase()) ? part.toLowerCase() : ':id',
  );
  return nameOf(`${method} /${told.join('/')}`);
}

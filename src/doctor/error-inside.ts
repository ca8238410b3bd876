import type { Failure, FailureKind } from '../protocol/text.ts';
import type { ReadAnswer } from './ask.ts';

/** Failures in which the upstream does not say what is wrong: it may have accepted the question. */
const wordlessKinds: ReadonlySet<FailureKind> = new Set([
  'unreachable',
  'stale',
  'broken',
  'first_byte_timeout',
  'idle_timeout',
  'total_timeout',
  'unread',
  'invalid',
  'truncated',
]);

/** The error that an answer with a good status holds in place of text; `null` without one. */
export function errorInside({ deltas, ending }: ReadAnswer): Failure | null {
  if (ending.kind === 'finished' || deltas.length > 0) return null;
  return wordlessKinds.has(ending.failure.kind) ? null : ending.failure;
}

/** Whether a question was answered, be it in part. */
export function isAnswered({ deltas, ending }: ReadAnswer): boolean {
  return ending.kind === 'finished' || deltas.length > 0;
}

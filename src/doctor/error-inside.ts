import type { Failure, FailureKind } from '../protocol/text.ts';
import type { ReadAnswer } from './ask.ts';
import { unknownFinishReason } from './inspect-chat.ts';

/** Failures in which the upstream does not say what is wrong: it may have accepted the question. */
const wordlessKinds: ReadonlySet<FailureKind> = new Set([
  'unreachable',
  'unanswered',
  'stale',
  'broken',
  'undecodable',
  'cut_coding',
  'first_byte_timeout',
  'first_text_timeout',
  'idle_timeout',
  'total_timeout',
  'unread',
  'invalid',
  'truncated',
]);

/** The error that an answer with a good status holds in place of text; `null` without one. */
export function errorInside(read: ReadAnswer): Failure | null {
  const { ending } = read;
  if (ending.kind === 'finished' || isAnswered(read) || unknownFinishReason(read) !== null) return null;
  return wordlessKinds.has(ending.failure.kind) ? null : ending.failure;
}

/** Whether a question was answered, be it in part. */
export function isAnswered({ deltas, ending }: ReadAnswer): boolean {
  return ending.kind === 'finished' || deltas.length > 0;
}

import type { Failure, FailureKind } from '../text.ts';

/** Builds a failure; all but its kind is optional. */
export function failure(
  kind: FailureKind,
  {
    detail = '',
    retryAfterMs = null,
    cause = null,
    upstreamError = null,
    fromMessage,
  }: Partial<Omit<Failure, 'kind'>> = {},
): Failure {
  const built = { kind, detail, retryAfterMs, cause, upstreamError };
  return fromMessage === undefined ? built : { ...built, fromMessage };
}

/** `what` names the fault without quoting the upstream: its bodies may hold prompts or addresses. */
export function invalidAnswer(what: string): Failure {
  return failure('invalid', { detail: what });
}

/** The failure of an answer that calls a tool: its text is missing or incomplete. */
export function toolCalled(): Failure {
  return invalidAnswer('a tool call, though no tools were offered');
}

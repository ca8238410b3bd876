import type { Failure, FailureKind } from '../text.ts';

/** Builds a failure; what most kinds do without is left out. */
export function failure(
  kind: FailureKind,
  { detail = '', retryAfterMs = null, cause = null }: Partial<Omit<Failure, 'kind'>> = {},
): Failure {
  return { kind, detail, retryAfterMs, cause };
}

/** `what` names the fault without quoting the upstream: its bodies may hold prompts or addresses. */
export function invalidAnswer(what: string): Failure {
  return failure('invalid', { detail: what });
}

/** An answer that wants a tool to be called: it has no text to pass on, or not all of it. */
export function toolCalled(): Failure {
  return invalidAnswer('a tool call, though no tools were offered');
}

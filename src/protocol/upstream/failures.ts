import { isPlainObject } from '../../shared/parse-json.ts';
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

/**
 * The first of these values that reports an error; `null` if none does. Some upstreams have an error without contents
 * beside every good answer.
 */
export function errorAmong(...values: readonly unknown[]): unknown {
  return values.find((value) => !isBlank(value) && !isBlankThroughout(value)) ?? null;
}

function isBlank(value: unknown): boolean {
  return (value ?? false) === false || value === 0 || (typeof value === 'string' && value.trim() === '');
}

function isBlankThroughout(value: unknown): boolean {
  const isBlankOrEmpty = (part: unknown): boolean => isBlank(part) || hasNothing(part);
  return hasNothing(value) || (isPlainObject(value) && Object.values(value).every(isBlankOrEmpty));
}

function hasNothing(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}

/** The failure of an answer that calls a tool: its text is missing or incomplete. */
export function toolCalled(): Failure {
  return invalidAnswer('a tool call, though no tools were offered');
}

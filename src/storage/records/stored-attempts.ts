import type { Attempt, RecordedFailure, SettledRecord } from '../../domain/money/consumption.ts';
import type { Usage } from '../../protocol/text.ts';
import type { Row } from '../engine.ts';

/** Most attempts have no cause: a field without a value is not written. */
type Stored = Omit<Attempt, 'startedMs' | 'cause' | 'upstreamError'> &
  Partial<Pick<Attempt, 'startedMs' | 'cause' | 'upstreamError'>>;

const nothing = { startedMs: null, cause: null, upstreamError: null } as const;

/**
 * The one attempt of a request where the columns of its record say all of it: it succeeded, and what its upstream counted is
 * the record's usage. `null` where the attempts have to be written.
 */
export function describedAttempt({ attempts, usage, usageSource, upstream }: SettledRecord): Attempt | null {
  const [attempt, ...others] = attempts;
  if (attempt === undefined || others.length > 0) return null;
  const { result, startedMs, cause, upstreamError } = attempt;
  const isPlain = result === 'ok' && startedMs !== null && cause === null && upstreamError === null;
  const counted = usageSource === 'upstream' ? usage : null;
  return isPlain && attempt.upstream === upstream && isSame(attempt.usage, counted) ? attempt : null;
}

/** Whether an attempt's usage is that of its record, as it is read again. */
function isSame(one: Usage | null, other: Usage | null): boolean {
  if (one === null || other === null) return one === other;
  return (
    one.inputTokens === other.inputTokens &&
    one.cachedInputTokens === other.cachedInputTokens &&
    one.cacheWriteTokens === other.cacheWriteTokens &&
    one.outputTokens === other.outputTokens &&
    one.reasoningTokens === other.reasoningTokens &&
    one.totalTokens === one.inputTokens + one.outputTokens
  );
}

/** Attempts as a record holds them, where its columns don't describe them. */
export function writeAttempts(attempts: readonly Attempt[]): string | null {
  if (attempts.length === 0) return null;
  return JSON.stringify(
    attempts.map(({ startedMs, cause, upstreamError, ...attempt }): Stored => ({
      ...attempt,
      ...(startedMs === null ? {} : { startedMs }),
      ...(cause === null ? {} : { cause }),
      ...(upstreamError === null ? {} : { upstreamError }),
    })),
  );
}

/** The attempts of a record, from its row and its usage. */
export function readAttempts(row: Row, usage: Usage | null): readonly Attempt[] {
  const text = row['attempts'];
  if (typeof text === 'string')
    return (JSON.parse(text) as readonly Stored[]).map((attempt) => Object.assign({}, nothing, attempt));
  if (row['attempt_ms'] === null) return [];
  const attempt: Attempt = {
    upstream: String(row['upstream']),
    model: String(row['attempt_model']),
    result: 'ok',
    startedMs: Number(row['attempt_started_ms']),
    durationMs: Number(row['attempt_ms']),
    usage: row['usage_source'] === 'upstream' ? usage : null,
    cause: null,
    upstreamError: null,
  };
  return [attempt];
}

/** Why a request failed, as a record holds it: as JSON, since not every text can be stored as it is. */
export function writeFailure(failure: RecordedFailure | null | undefined): string | null {
  return failure ? JSON.stringify(failure) : null;
}

/** Why a request failed, as its record says. */
export function readFailure(text: unknown): RecordedFailure | null {
  return typeof text === 'string' ? (JSON.parse(text) as RecordedFailure) : null;
}

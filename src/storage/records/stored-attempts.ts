import type { Attempt, RecordedFailure } from '../../domain/money/consumption.ts';

/** The fields that older records do not have. Most attempts have no cause either, so an unset field is not written. */
type Stored = Omit<Attempt, 'startedMs' | 'cause' | 'upstreamError'> &
  Partial<Pick<Attempt, 'startedMs' | 'cause' | 'upstreamError'>>;

/** The attempts of a request as a record holds them. */
export function writeAttempts(attempts: readonly Attempt[]): string {
  return JSON.stringify(
    attempts.map(({ startedMs, cause, upstreamError, ...attempt }): Stored => ({
      ...attempt,
      ...(startedMs === null ? {} : { startedMs }),
      ...(cause === null ? {} : { cause }),
      ...(upstreamError === null ? {} : { upstreamError }),
    })),
  );
}

/** The attempts in a record, of this version or an older one. */
export function readAttempts(text: string): readonly Attempt[] {
  const stored = JSON.parse(text) as readonly Stored[];
  return stored.map((attempt) =>
    Object.assign({ startedMs: null, cause: null, upstreamError: null }, attempt),
  );
}

/** Why a request failed, as a record holds it: as JSON, since not every text can be stored as it is. */
export function writeFailure(failure: RecordedFailure | null | undefined): string | null {
  return failure ? JSON.stringify(failure) : null;
}

/** Why a request failed, as its record says. */
export function readFailure(text: unknown): RecordedFailure | null {
  return typeof text === 'string' ? (JSON.parse(text) as RecordedFailure) : null;
}

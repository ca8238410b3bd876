import type { SharedDatabaseState } from '../../domain/ports/shared-changes.ts';

/** A database that nodes share, as `/readyz` shows it. */
export function presentSharedDatabase({
  shared,
  synchronousStandby,
  newestCommitAgeMs,
  warnings,
}: SharedDatabaseState) {
  return {
    shared,
    newest_commit_age_s: newestCommitAgeMs === null ? null : Math.round(newestCommitAgeMs) / 1_000,
    synchronous_standby: synchronousStandby,
    warnings,
  };
}

import type { Clock } from '../../domain/ports/clock.ts';
import type { SharedDatabaseState } from '../../domain/ports/shared-changes.ts';
import { StorageError } from '../../domain/storage-refusal.ts';
import { within } from '../../domain/time-limit.ts';
import type { Engine, Row, Statement } from '../engine.ts';
import { sql } from '../statements.ts';
import { whileLost } from './connection/while-lost.ts';

/** How long what was read of the server's settings is used, in milliseconds: more frequent probes make no further reads. */
const intervalMs = 5_000;

/** How long a probe waits for that read, in milliseconds. */
const deadlineMs = 500;

interface SharedDatabaseOptions extends Pick<SharedDatabaseState, 'shared'> {
  readonly engine: Pick<Engine, 'lookUp'>;
  /** When the newest unit was committed, on the monotonic clock. */
  readonly newestCommitMs: () => number | null;
  readonly clock: Clock;
}

const selectSettings: Statement = sql`SELECT current_setting('synchronous_commit') AS commit,
  current_setting('synchronous_standby_names') AS standbys`;

/** Returns a function that reads the state of a shared database for a readiness probe: it resolves within half a second. */
export function watchSharedDatabase({
  engine,
  newestCommitMs,
  shared,
  clock,
}: SharedDatabaseOptions): () => Promise<SharedDatabaseState> {
  let startedMs = Number.NEGATIVE_INFINITY;
  let underWay: Promise<void> | null = null;
  let settings: Row | null = null;

  const read = async (): Promise<void> => {
    startedMs = clock.monotonicMs();
    // While the database is away, that is the write check's to say: what was read last stays.
    const found = await engine.lookUp([selectSettings]).catch(() => []);
    settings = found[0]?.[0] ?? settings;
    underWay = null;
  };
  return async () => {
    if (underWay === null && clock.monotonicMs() - startedMs >= intervalMs) underWay = read();
    if (underWay !== null) await within(underWay, deadlineMs, clock);
    const newestMs = newestCommitMs();
    return {
      shared,
      ...judge(settings),
      newestCommitAgeMs: newestMs === null ? null : clock.monotonicMs() - newestMs,
    };
  };
}

function judge(settings: Row | null): Pick<SharedDatabaseState, 'synchronousStandby' | 'warnings'> {
  if (settings === null) return { synchronousStandby: 'unknown', warnings: [] };
  const { commit, standbys } = settings;
  if (commit === 'off')
    return {
      synchronousStandby: 'none',
      warnings: ['synchronous_commit is off: a crash of the database loses the last settlements'],
    };
  if (commit !== 'local' && standbys !== '') return { synchronousStandby: 'configured', warnings: [] };
  return {
    synchronousStandby: 'none',
    warnings: ['no synchronous standby: a failover of the database loses the last settlements'],
  };
}

/** Reads the id that no other database has, for a start: also where the connection is lost meanwhile, for a while. */
export async function readDatabaseId(engine: Pick<Engine, 'lookUp'>, clock: Clock): Promise<string> {
  const [[row] = []] = await whileLost(() => engine.lookUp([sql`SELECT id FROM database_id`]), isLost, clock);
  return String(row?.['id']);
}

function isLost(error: unknown): boolean {
  return error instanceof StorageError && error.reason === 'unavailable';
}

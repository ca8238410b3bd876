import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import type { SettlementSpool } from '../../domain/ports/records.ts';
import type { ReportFault } from '../../domain/ports/telemetry.ts';
import { createSettlementSpool } from './settlement-spool.ts';
import { UnknownLineError } from './spool-lines.ts';

/** How many processes may have their spools in one folder. */
const maxSpools = 64;

/** A spool that is locked by this process. */
interface OwnedSpool {
  readonly path: string;
  readonly spool: SettlementSpool;
  readonly lock: DatabaseSync;
}

/** Opens and locks a spool; `null` when another process has it. */
type LockSpool = (path: string) => OwnedSpool | null;

interface SpoolFolder {
  readonly folder: string;
  /** Reads the id of the database: letters and digits, which no other database has. */
  readonly databaseId: () => Promise<string>;
  readonly onFault: ReportFault;
}

/**
 * The spool of a process in a folder that it may share with others, as for a database that several of them use: the first
 * file of its database that no other process has locked. It takes over what is in all of the others that are not locked,
 * whose processes are dead: one of those may never be started again. The folder must be on a disk of this machine: locks
 * on network file systems are not reliable.
 */
export function createSpoolInFolder({ folder, databaseId, onFault }: SpoolFolder): SettlementSpool {
  let owned: OwnedSpool | null = null;
  const own = (): SettlementSpool => {
    if (owned === null) throw new Error('the spool of settlements is not open');
    return owned.spool;
  };
  const close = async (): Promise<void> => {
    const closing = owned;
    owned = null;
    try {
      await closing?.spool.close();
    } finally {
      closing?.lock.close();
    }
  };
  return {
    async open() {
      try {
        // Loaded here, because most processes have no such folder.
        const { lockFile } = await import('../sqlite/owner-lock.ts');
        const lock: LockSpool = (path) => {
          const held = lockFile(`${path}-owner`, 0);
          return held === null ? null : { path, lock: held, spool: createSettlementSpool(path, onFault) };
        };
        const paths = pathsIn(folder, await databaseId());
        owned = claim(paths, lock);
        const all = [await owned.spool.open(), ...(await takeOverOthers(paths, owned, lock, onFault))];
        return {
          records: all.flatMap(({ records }) => records),
          damaged: all.reduce((sum, { damaged }) => sum + damaged, 0),
        };
      } catch (error) {
        await close().catch(() => {});
        throw explain(folder, error);
      }
    },
    append: async (record) => own().append(record),
    clear: async () => own().clear(),
    close,
  };
}

/**
 * The spools that processes on a database may have in a folder; beside each is the file that its process locks. Another database
 * would reject the settlements of this one, or charge a key of the same name there, so a process uses only those of its own.
 */
function pathsIn(folder: string, database: string): readonly string[] {
  return Array.from({ length: maxSpools }, (_, number) =>
    join(folder, `textgate-${database}-${number}.spool`),
  );
}

/** Locks the first of some spools that no other process has. */
function claim(paths: readonly string[], lock: LockSpool): OwnedSpool {
  for (const path of paths) {
    const found = lock(path);
    if (found !== null) return found;
  }
  throw new Error(`all of its ${maxSpools} spools are in use by other processes`);
}

/** Moves what dead processes left in the other spools into this process's own, and removes those files. */
async function takeOverOthers(
  paths: readonly string[],
  own: OwnedSpool,
  lock: LockSpool,
  onFault: ReportFault,
): Promise<readonly Awaited<ReturnType<SettlementSpool['open']>>[]> {
  const found = [];
  for (const path of paths.filter((each) => each !== own.path && existsSync(each))) {
    const other = lock(path);
    if (other === null) continue;
    try {
      const left = await other.spool.open();
      found.push(left);
      // Only what is in the own spool may be removed there: a process that ends in between leaves both, and a settlement
      // is made once however often it is offered.
      await Promise.all(left.records.map((record) => own.spool.append(record)));
      await other.spool.clear();
      await other.spool.close();
      rmSync(path);
    } catch (error) {
      onFault('a spool of settlements that another process left could not be taken over', error);
    } finally {
      await other.spool.close().catch(() => {});
      other.lock.close();
    }
  }
  return found;
}

function explain(folder: string, error: unknown): Error {
  // Another folder would not help: what is in this one would wait there for ever.
  if (error instanceof UnknownLineError) return error;
  const reason = error instanceof Error ? error.message : String(error);
  return new Error(
    `the spool of settlements in ${folder} can't be used: ${reason}. Set storage.spool to a folder in which this process can write, or to none: then settlements that PostgreSQL has not taken when the process ends are lost`,
    { cause: error },
  );
}

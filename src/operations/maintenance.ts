import { isRefusal, refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { LedgerAudit } from '../domain/ports/ledger-audit.ts';
import { StorageError } from '../domain/storage-refusal.ts';
import { createPause } from '../domain/pause.ts';
import { oneAtATime } from './one-at-a-time.ts';
import { verifyLedger } from './verify-ledger.ts';
import type { Verification } from './verify-ledger.ts';

/** The pause of a verification between two reads of the database, in milliseconds. */
const verifyPauseMs = 5;

const damaged = 'The ledger could not be verified, because the database file is damaged';
const toRestore =
  'Stop the gateway, and restore a backup, which keeps the damaged file beside it:\n  textgate restore BACKUP';

/** A consistent copy of the whole database, in a file of its own. */
export interface DatabaseCopy {
  readonly bytes: number;
  read(): AsyncIterable<Uint8Array>;
  /** Deletes the file; harmless when it was deleted before. */
  remove(): Promise<void>;
}

/** Long work on the whole database, for operators: one of each kind at a time, since each loads the disk. */
export interface Maintenance {
  /** Adds the ledger up again; rejects when the signal is raised before the end. */
  verifyLedger(signal: AbortSignal): Promise<Verification | Refusal>;
  /** Copies the database. The next copy can be made once this one is removed. */
  backUp(): Promise<DatabaseCopy | Refusal>;
}

/** `copy` resolves with `null` where there is no file to copy; then a backup is refused with `whyNoCopy`. */
export function createMaintenance(
  audit: LedgerAudit,
  database: { copy(): Promise<DatabaseCopy | null> },
  whyNoCopy: string,
  clock: Clock,
): Maintenance {
  const beginVerification = oneAtATime('A verification of the ledger');
  const beginBackup = oneAtATime('A backup');
  return {
    async verifyLedger(signal) {
      const end = beginVerification();
      if (isRefusal(end)) return end;
      try {
        return await verifyLedger(audit, createPause(clock, verifyPauseMs, signal));
      } catch (error) {
        // What is tried again would fail again, and the process ends: the answer has to say what to do.
        if (error instanceof StorageError && error.reason === 'damaged')
          return refuse('storage_unavailable', `${damaged}: ${error.message}. ${toRestore}`);
        throw error;
      } finally {
        end();
      }
    },
    async backUp() {
      const end = beginBackup();
      if (isRefusal(end)) return end;
      const made = await database.copy().catch((error: unknown) => {
        end();
        // Operators are told the reason, which is a full disk as a rule; clients never are.
        if (error instanceof StorageError) return refuse('storage_unavailable', error.message);
        throw error;
      });
      if (isRefusal(made)) return made;
      if (made === null) {
        end();
        return refuse('invalid_value', whyNoCopy);
      }
      return {
        ...made,
        async remove() {
          await made.remove();
          end();
        },
      };
    },
  };
}

import type { SettlementSpool } from '../../domain/ports/settlement-spool.ts';
import type { ReportFault } from '../../domain/ports/telemetry.ts';
import { SpoolFile, isFileMissing } from './spool-file.ts';
import { readSpoolLines, writeSpoolLine } from './spool-lines.ts';

/**
 * A spool in one file. Its space is overwritten in place, which a full disk allows on file systems that don't copy on
 * write. It has no mark of its database: a settlement is of one request and of one key. Beside another database it is made
 * only if that one has the key, as it may if the config declares it.
 */
export function createSettlementSpool(path: string, onFault: ReportFault): SettlementSpool {
  let file: SpoolFile | null = null;
  let lastTurn: Promise<unknown> = Promise.resolve();
  /** Lines whose turn has not come yet share one write. */
  let batch: { readonly lines: string[]; readonly written: Promise<void> } | null = null;

  const inTurn = <Result>(work: (open: SpoolFile) => Promise<Result>): Promise<Result> => {
    const done = lastTurn.then(async () => {
      if (file === null) throw new Error('the spool of settlements is not open');
      return work(file);
    });
    lastTurn = done.catch(() => {});
    return done;
  };

  return {
    async open() {
      try {
        const opened = await SpoolFile.open(path, onFault);
        file = opened.file;
        return readSpoolLines(opened.text);
      } catch (error) {
        await file?.abandon();
        file = null;
        if (!isFileMissing(error)) throw error;
        onFault('settlements that the database does not take would not outlive this process', error);
        return { records: [], damaged: 0 };
      }
    },
    append(record) {
      if (batch === null) {
        const lines: string[] = [];
        const written = inTurn(async (open) => {
          if (batch?.lines === lines) batch = null;
          await open.append(lines);
        });
        batch = { lines, written };
      }
      batch.lines.push(writeSpoolLine(record));
      return batch.written;
    },
    clear() {
      // Lines that come after this call must not be written, and removed, with those before it.
      batch = null;
      return inTurn((open) => open.empty());
    },
    async close() {
      await lastTurn;
      const closing = file;
      file = null;
      await closing?.close();
    },
  };
}

import { join } from 'node:path';
import { freePort } from '../../support/free-port.ts';
import { startServer } from './start-server.ts';
import type { Subject } from './subject.ts';

/** The rewriter of `child-naive.ts`: what the work costs without care and without accounting. */
export const naive = rewriter('naive', null);

/**
 * The same one with a charge on the disk before each answer's end, and nothing else of what this gateway does: the floor
 * of any gateway of these packages that charges exactly.
 */
export const ledger = rewriter('ledger', 'ledger.db');

function rewriter(name: string, ledgerFile: string | null): Subject {
  return {
    name,
    isTextgate: false,
    only: null,
    async start({ simulatorPort, folder, openFiles }) {
      const port = await freePort();
      const args = [join(import.meta.dirname, 'child-naive.ts'), String(simulatorPort), String(port)];
      const databaseFile = ledgerFile === null ? null : join(folder, ledgerFile);
      const running = await startServer({
        program: process.execPath,
        args: databaseFile === null ? args : [...args, databaseFile],
        options: { cwd: folder, openFiles },
        port,
      });
      return { ...running, databaseFile };
    },
  };
}

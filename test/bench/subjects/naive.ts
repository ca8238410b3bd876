import { join } from 'node:path';
import { freePort } from '../../support/free-port.ts';
import { startServer } from './start-server.ts';
import type { Subject } from './subject.ts';

/** The rewriter of `child-naive.ts`: what the work costs without care and without accounting. */
export const naive: Subject = {
  name: 'naive',
  isTextgate: false,
  only: null,
  async start({ simulatorPort, folder, openFiles }) {
    const port = await freePort();
    return startServer({
      program: process.execPath,
      args: [join(import.meta.dirname, 'child-naive.ts'), String(simulatorPort), String(port)],
      options: { cwd: folder, openFiles },
      port,
    });
  },
};

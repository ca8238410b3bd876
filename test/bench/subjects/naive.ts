import { join } from 'node:path';
import { freePort, startProcess, stopProcess, untilReady } from './processes.ts';
import type { Subject } from './subject.ts';

/** The rewriter of `child-naive.ts`: what the work costs without care and without accounting. */
export const naive: Subject = {
  name: 'naive',
  isTextgate: false,
  async start({ simulatorPort, folder, openFiles }) {
    const port = await freePort();
    const startedMs = performance.now();
    const module = join(import.meta.dirname, 'child-naive.ts');
    const child = startProcess(process.execPath, [module, String(simulatorPort), String(port)], {
      cwd: folder,
      openFiles,
    });
    await untilReady(child, port, '/');
    const startMs = performance.now() - startedMs;
    return {
      port,
      headers: {},
      failoverHeaders: null,
      pid: child.pid ?? 0,
      commandLine: null,
      startMs,
      close: () => stopProcess(child),
    };
  },
};

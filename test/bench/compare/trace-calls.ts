import { spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { startProcess, stopProcess } from '../subjects/processes.ts';

/** How long it may take until all threads are counted, in milliseconds. */
const beginDeadlineMs = 10_000;

/** Counts the calls of the system as they are entered, in the kernel: a process that is counted is not slower for it. */
const perf = ['stat', '-x,', '-e', 'raw_syscalls:sys_enter'];

/** Why system calls can't be counted on this machine; null where they can. */
export function traceAbsence(): string | null {
  const { status } = spawnSync('perf', [...perf, 'true'], { stdio: 'ignore' });
  return status === 0 ? null : 'perf of Linux is not installed, or may not count them';
}

/** Counts the system calls of processes. */
export interface CallTrace {
  /** Ends the count. Resolves with the calls of all their threads since it began; with null if not all were counted. */
  end(): Promise<number | null>;
}

/**
 * Begins to count the system calls of processes, with all threads that they have or start. Resolves
 * with the reason where that is not possible, as without the right to it.
 */
export async function traceCalls(pids: readonly number[], folder: string): Promise<CallTrace | string> {
  const file = join(mkdtempSync(join(folder, 'calls-')), 'count');
  // With a delay it says when it begins.
  const args = [...perf, '--delay', '1', '-o', file, '-p', pids.join(',')];
  const counter = startProcess('perf', args, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
  const fault = await untilBegun(counter);
  if (fault !== null) {
    await stopProcess(counter, 'SIGINT');
    return fault;
  }
  return {
    async end() {
      if (counter.exitCode !== null || counter.signalCode !== null) return null;
      await stopProcess(counter, 'SIGINT');
      return readCalls(readFileSync(file, 'utf8'));
    },
  };
}

/** Waits until it counts. Resolves with what prevents it; null if nothing does. */
function untilBegun(counter: ChildProcess): Promise<string | null> {
  return new Promise((resolve) => {
    let said = '';
    const timer = setTimeout(
      () => resolve(`perf does not count within ${beginDeadlineMs / 1_000} s`),
      beginDeadlineMs,
    );
    counter.stderr?.setEncoding('latin1').on('data', (text: string) => {
      said += text;
      if (!said.includes('Events enabled')) return;
      clearTimeout(timer);
      resolve(null);
    });
    counter.once('close', () => {
      clearTimeout(timer);
      resolve(said.trim().split('\n', 1)[0] ?? '');
    });
  });
}

/** Reads the count as `perf stat -x,` writes it; null where it was not counted. */
export function readCalls(written: string): number | null {
  const [, count] = /^(\d+),,raw_syscalls:sys_enter,/m.exec(written) ?? [];
  return count === undefined ? null : Number(count);
}

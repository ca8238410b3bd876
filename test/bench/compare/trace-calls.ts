import { spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { startProcess, stopProcess } from '../subjects/processes.ts';

/** How long it may take to attach to all threads, in milliseconds. */
const attachDeadlineMs = 10_000;

/** Why system calls can't be counted on this machine; null where they can. */
export function traceAbsence(): string | null {
  return spawnSync('strace', ['-V'], { stdio: 'ignore' }).status === 0 ? null : 'strace is not installed';
}

/** Counts the system calls of processes. */
export interface CallTrace {
  /**
   * Ends the count, and leaves the processes as they were. Resolves with the calls of all their threads since it began; with
   * null if not all were counted.
   */
  end(): Promise<number | null>;
}

/**
 * Begins to count the system calls of processes, with all threads that they have or start. Resolves
 * with the reason where that is not possible, as without the right to it.
 */
export async function traceCalls(pids: readonly number[], folder: string): Promise<CallTrace | string> {
  const file = join(mkdtempSync(join(folder, 'calls-')), 'summary');
  const targets = pids.flatMap((pid) => ['-p', String(pid)]);
  const tracer = startProcess('strace', ['-c', '-f', '-o', file, ...targets], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const fault = await untilAttached(tracer, pids);
  if (fault !== null) {
    await stopProcess(tracer, 'SIGINT');
    return fault;
  }
  return {
    async end() {
      if (tracer.exitCode !== null || tracer.signalCode !== null) return null;
      await stopProcess(tracer, 'SIGINT');
      return readCalls(readFileSync(file, 'utf8'));
    },
  };
}

/** Waits until it says that it is attached to each of the processes. Resolves with what prevents it; null if nothing does. */
function untilAttached(tracer: ChildProcess, pids: readonly number[]): Promise<string | null> {
  return new Promise((resolve) => {
    let said = '';
    const timer = setTimeout(
      () => resolve(`strace is not attached within ${attachDeadlineMs / 1_000} s`),
      attachDeadlineMs,
    );
    tracer.stderr?.setEncoding('latin1').on('data', (text: string) => {
      said += text;
      if (!pids.every((pid) => new RegExp(`Process ${pid} attached\\b`).test(said))) return;
      clearTimeout(timer);
      resolve(null);
    });
    tracer.once('close', () => {
      clearTimeout(timer);
      resolve(said.trim().split('\n').at(-1) ?? '');
    });
  });
}

/** A line of a summary: share, seconds, microseconds of each, calls, errors if there were any, name. */
const summaryLine = /^ *\S+ +[\d.]+ +\d+ +(\d+) +(?:\d+ +)?([a-z]\w*)$/gm;

/** Adds up the calls of a summary as `strace -c` writes it. */
export function readCalls(summary: string): number {
  return [...summary.matchAll(summaryLine)]
    .filter(([, , name]) => name !== 'total')
    .reduce((sum, [, calls]) => sum + Number(calls), 0);
}

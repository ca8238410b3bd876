import { readFileSync, readdirSync } from 'node:fs';

/** What processes have used, from the kernel's accounting. */
export interface Usage {
  /** CPU time of all their threads, in milliseconds. */
  readonly cpuMs: number;
  /** Resident memory, in bytes. */
  readonly rssBytes: number;
}

const pageBytes = 4_096;

/** Whether the kernel's accounting can be read here: only Linux has it. */
export const canMeasure = process.platform === 'linux';

/** A process and all processes below it. */
export function processTree(pid: number): readonly number[] {
  const children = tasksOf(pid).flatMap((task) =>
    readText(`/proc/${pid}/task/${task}/children`).split(' ').filter(Boolean).map(Number),
  );
  return [pid, ...children.flatMap(processTree)];
}

/** Adds up the usage of some processes; one that has ended counts as nothing. */
export function readUsage(pids: readonly number[]): Usage {
  let cpuMs = 0;
  let rssBytes = 0;
  for (const pid of pids) {
    for (const task of tasksOf(pid)) cpuMs += nanosecondsOf(`/proc/${pid}/task/${task}/schedstat`) / 1e6;
    const [, resident = '0'] = readText(`/proc/${pid}/statm`).split(' ');
    rssBytes += Number(resident) * pageBytes;
  }
  return { cpuMs, rssBytes };
}

function tasksOf(pid: number): readonly string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
}

function nanosecondsOf(path: string): number {
  return Number(readText(path).split(' ', 1)[0]);
}

/** A file of /proc; empty when its process or thread has just ended. */
function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return '';
  }
}

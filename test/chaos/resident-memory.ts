import { readFileSync } from 'node:fs';

/** The resident memory of a process in MiB, from Linux: it needs no answer of the process. */
export function residentMib(pid: number | undefined): number {
  const [, kib = NaN] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kib) / 1_024;
}

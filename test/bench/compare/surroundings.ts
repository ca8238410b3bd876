import { execFileSync } from 'node:child_process';
import { cpus, release, totalmem, type } from 'node:os';
import { ownCheckout } from '../subjects/textgate.ts';
import type { Surroundings } from './run.ts';

/** Describes the machine and the programs, for the reader of the figures. */
export function describeSurroundings(): Surroundings {
  return {
    date: new Date().toISOString(),
    commit: output('git', '-C', ownCheckout, 'describe', '--always', '--dirty') ?? 'unknown',
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: cpus().length,
    memoryBytes: totalmem(),
    system: `${type()} ${release()}`,
    node: process.version,
    nginx: /nginx\/(\S+)/.exec(output('/bin/sh', '-c', '/usr/sbin/nginx -v 2>&1') ?? '')?.[1] ?? null,
  };
}

/** What a program prints; null if it can't be run or fails. */
function output(program: string, ...args: readonly string[]): string | null {
  try {
    return execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return null;
  }
}

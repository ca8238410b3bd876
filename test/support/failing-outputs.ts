import { execFileSync, spawnSync } from 'node:child_process';
import { closeSync, constants, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { makeTemporaryFolder } from './temporary-folder.ts';

/** Whether this machine has `/dev/full`, on which every write fails for lack of space. */
export const hasFullDevice = spawnSync('test', ['-c', '/dev/full']).status === 0;

/** `/dev/full`, opened for writing. */
export function openFullDevice(): number {
  return opened('/dev/full', constants.O_WRONLY);
}

/** The writing end of a pipe without a reader, which is full: every write blocks. */
export function openStalledPipe(): number {
  const path = makeFifo();
  const end = opened(path, constants.O_RDWR);
  const filling = opened(path, constants.O_WRONLY | constants.O_NONBLOCK);
  for (const bytes of [4_096, 1]) fill(filling, Buffer.alloc(bytes, '.'));
  return end;
}

function fill(fd: number, piece: Buffer): void {
  try {
    for (;;) writeSync(fd, piece);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
  }
}

/** The writing end of a pipe whose reading end is closed. */
export function openBrokenPipe(): number {
  const path = makeFifo();
  const reader = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  const writer = opened(path, constants.O_WRONLY);
  closeSync(reader);
  return writer;
}

/** A named pipe, by its path. */
export function makeFifo(): string {
  const path = join(makeTemporaryFolder(), 'pipe');
  execFileSync('mkfifo', [path]);
  return path;
}

function opened(path: string, flags: number): number {
  const fd = openSync(path, flags);
  onTestFinished(() => closeSync(fd));
  return fd;
}

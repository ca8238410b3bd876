import { spawnSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { makeTemporaryFolder } from './temporary-folder.ts';

/** A small file system that a test can fill. */
interface SmallDisk {
  readonly folder: string;
  /** Fills it to the last byte. */
  fill(): void;
  free(): void;
  /** Lets nothing be written on it. */
  forbidWrites(): void;
  allowWrites(): void;
}

/** Whether this process may mount one: it needs root, and is refused in some containers. */
export function canMount(): boolean {
  const mounted = spawnSync('unshare', ['-m', 'mount', '-t', 'tmpfs', 'none', '/mnt']);
  return mounted.status === 0;
}

export function mountSmallDisk(): SmallDisk {
  const folder = makeTemporaryFolder();
  const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'none', folder]);
  if (status !== 0) throw new Error('a small disk could not be mounted');
  onTestFinished(() => void spawnSync('umount', ['-l', folder]));
  const filler = join(folder, 'filler');
  const mountAgain = (how: 'ro' | 'rw') => void spawnSync('mount', ['-o', `remount,${how}`, folder]);
  return {
    folder,
    fill() {
      for (const bytes of [65_536, 1]) fillUp(filler, bytes);
    },
    free: () => rmSync(filler),
    forbidWrites: () => mountAgain('ro'),
    allowWrites: () => mountAgain('rw'),
  };
}

function fillUp(file: string, pieceBytes: number): void {
  const piece = Buffer.alloc(pieceBytes);
  try {
    for (;;) writeFileSync(file, piece, { flag: 'a' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  }
}

import { readFileSync, statSync } from 'node:fs';

/**
 * The ids of the other processes that have locked a byte of a file; none where they can't be found, as in another container or
 * on another system than Linux. The file itself can't be read for it: in a process that has a lock on it, closing a second
 * descriptor would release that.
 */
export function lockHolders(file: string, isLocked: (firstByte: number) => boolean): readonly number[] {
  try {
    const { ino } = statSync(file);
    // Such as `7: POSIX  ADVISORY  WRITE 4711 fd:01:1234 1073741824 1073742335`.
    const lock = new RegExp(String.raw`POSIX .* (?:READ|WRITE) +(\d+) \w+:\w+:${ino} (\d+) `, 'g');
    const found = [...readFileSync('/proc/locks', 'utf8').matchAll(lock)]
      .filter(([, , first]) => isLocked(Number(first)))
      .map(([, id]) => Number(id))
      .filter((id) => id > 0 && id !== process.pid);
    return [...new Set(found)];
  } catch {
    return [];
  }
}

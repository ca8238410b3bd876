import { fdatasyncSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { sendToParent } from './send-to-parent.ts';

/**
 * Measures the disk itself: commits a block beside the database again and again, as the gateway does for a request. A
 * gap between answers can't be shorter than the longest of these commits in the same time. Replies to every message
 * with the longest since the last one, in milliseconds. Arguments: the folder.
 */

/** The pause between two commits, in milliseconds, and the size of one, in bytes. */
const pauseMs = 50;
const block = Buffer.alloc(4_096, 1);

const file = openSync(join(process.argv[2] ?? '.', 'disk-probe'), 'w');
let longestMs = 0;
setInterval(() => {
  const startedMs = performance.now();
  writeSync(file, block, 0, block.length, 0);
  fdatasyncSync(file);
  longestMs = Math.max(longestMs, performance.now() - startedMs);
}, pauseMs);
process.on('message', () => {
  sendToParent(longestMs);
  longestMs = 0;
});
process.on('disconnect', () => process.exit());

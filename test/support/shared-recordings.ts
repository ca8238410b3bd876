import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** Recorded provider traffic beside the checkout; tests that use it are skipped where there is none. */
export const recordings = join(import.meta.dirname, '..', '..', '..', 'shared', 'streams');

export const hasRecordings = existsSync(join(recordings, 'manifest.json'));

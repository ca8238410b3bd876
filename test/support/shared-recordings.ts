import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** Recorded provider traffic, kept beside the checkout where there is any: tests that use it are skipped without. */
export const recordings = join(import.meta.dirname, '..', '..', '..', 'shared', 'streams');

export const hasRecordings = existsSync(join(recordings, 'manifest.json'));

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { recordings } from '../support/shared-recordings.ts';

/** One recorded answer of a provider. */
export interface Recording {
  readonly file: string;
  readonly protocol: 'chat' | 'responses';
  readonly kind: string;
  readonly isStream: boolean;
  readonly contentType: string;
  readonly bytes: Buffer;
}

interface ManifestRow {
  readonly file: string;
  readonly protocol: string;
  readonly kind: string;
  readonly status: number | null;
  readonly content_type: string;
}

/** Every recorded answer with status 200 in a protocol that is read, of the kinds that are asked for. */
export function loadRecordings(isWanted: (recording: Recording) => boolean): Recording[] {
  const rows = JSON.parse(readFileSync(join(recordings, 'manifest.json'), 'utf8')) as ManifestRow[];
  return rows
    .filter(({ protocol, status }) => (protocol === 'chat' || protocol === 'responses') && status === 200)
    .map(({ file, protocol, kind, content_type: contentType }) => ({
      file,
      protocol: protocol as Recording['protocol'],
      kind,
      isStream: file.endsWith('.sse'),
      contentType,
      bytes: readFileSync(join(recordings, file)),
    }))
    .filter(isWanted);
}

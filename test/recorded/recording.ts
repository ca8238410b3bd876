import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DialectName } from '../../src/protocol/upstream/dialects.ts';
import { recordings } from '../support/shared-recordings.ts';

/** One recorded answer of a provider. */
export interface Recording {
  readonly file: string;
  readonly protocol: DialectName;
  readonly kind: string;
  readonly status: number;
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

const readProtocols: ReadonlySet<string> = new Set<DialectName>(['chat', 'responses', 'anthropic', 'gemini']);

/** Every recorded answer with status 200 in a supported protocol that passes the filter. */
export function loadRecordings(isWanted: (recording: Recording) => boolean): Recording[] {
  return load((status) => status === 200).filter(isWanted);
}

/** Every recorded answer with an error status in a supported protocol that passes the filter. */
export function loadErrors(isWanted: (recording: Recording) => boolean): Recording[] {
  return load((status) => status >= 400).filter(isWanted);
}

function load(isWanted: (status: number) => boolean): Recording[] {
  const rows = JSON.parse(readFileSync(join(recordings, 'manifest.json'), 'utf8')) as ManifestRow[];
  return rows
    .filter(({ protocol, status }) => readProtocols.has(protocol) && status !== null && isWanted(status))
    .map(({ file, protocol, kind, status, content_type: contentType }) => ({
      file,
      protocol: protocol as DialectName,
      kind,
      status: status as number,
      isStream: file.endsWith('.sse'),
      contentType,
      bytes: readFileSync(join(recordings, file)),
    }));
}

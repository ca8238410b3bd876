import type { AuditLine } from '../../domain/audit/audit-line.ts';
import { writeCsv } from './csv.ts';
import type { CsvColumn } from './csv.ts';
import { isoTime } from './iso-time.ts';

/** A line of the audit as JSON. */
export function presentAuditLine({ number, createdAtMs, actor, keyId, ...line }: AuditLine) {
  return {
    number,
    created_at: isoTime(createdAtMs),
    way: actor.way,
    actor: actor.name,
    address: actor.address,
    action: line.action,
    key_id: keyId,
    subject: line.subject,
    result: line.result,
    times: line.times,
    changes: line.changes,
  };
}

export type PresentedAuditLine = ReturnType<typeof presentAuditLine>;

/** A line as it is archived, with its hash in the chain: no other copy will be left. */
export function writeArchivedAuditLine(line: AuditLine & { readonly hash: string }): string {
  return JSON.stringify({ ...presentAuditLine(line), hash: line.hash });
}

const columns: readonly CsvColumn<PresentedAuditLine>[] = [
  ['number', ({ number }) => number],
  ['created_at', (line) => line.created_at],
  ['way', ({ way }) => way],
  ['actor', ({ actor }) => actor],
  ['address', ({ address }) => address],
  ['action', ({ action }) => action],
  ['key_id', (line) => line.key_id],
  ['subject', ({ subject }) => subject],
  ['result', ({ result }) => result],
  ['times', ({ times }) => times],
  ['changes', ({ changes }) => (changes.length === 0 ? null : JSON.stringify(changes))],
];

/** Lines as CSV (RFC 4180) with a header line. */
export function presentAuditAsCsv(lines: readonly AuditLine[]): string {
  return writeCsv(lines.map(presentAuditLine), columns);
}

import type { PresentedAuditLine } from '../http/present/audit.ts';
import { readCsv, readList } from './admin-client.ts';
import { findKeyId } from './keys/find-key.ts';
import { writeTable, writeTime } from './output.ts';

/** The options of `audit`, as commander names them. */
export interface AuditOptions {
  readonly from?: string;
  readonly to?: string;
  readonly actor?: string;
  readonly action?: string;
  readonly key?: string;
  readonly search?: string;
  readonly limit?: number;
  readonly csv?: true;
  readonly json?: true;
}

/** How many rows a table on a terminal has without `--limit`. */
const terminalRows = 20;

/** Lists what operators did, as a table, JSON or CSV. A table on a terminal is short unless `--limit` is given. */
export async function listAudit({ csv, json, limit, key, ...filter }: AuditOptions): Promise<string> {
  const keyId = key === undefined ? {} : { key: await findKeyId(key) };
  const query = new URLSearchParams({ ...filter, ...keyId }).toString();
  if (csv) return readCsv('/admin/audit', query, limit ?? Infinity);
  const isShort = limit === undefined && !json && process.stdout.isTTY;
  const lines = await readList<PresentedAuditLine>(
    '/admin/audit',
    query,
    isShort ? terminalRows : (limit ?? Infinity),
  );
  if (json) return JSON.stringify(lines);
  if (lines.length === 0) return 'no lines';
  return writeTable(
    ['TIME (UTC)', 'WAY', 'WHO', 'ACTION', 'WHAT', 'RESULT', 'CHANGES'],
    lines.map((line) => [
      writeTime(line.created_at),
      line.way,
      line.actor ?? line.address ?? '-',
      line.action,
      line.subject ?? line.key_id ?? '-',
      line.times === 1 ? line.result : `${line.result} (${line.times} times)`,
      line.changes.map(describeChange).join(', '),
    ]),
  );
}

function describeChange({ field, before, after }: PresentedAuditLine['changes'][number]): string {
  if (before === null) return after === null ? field : `${field} ${after}`;
  return `${field} ${before} -> ${after ?? 'none'}`;
}

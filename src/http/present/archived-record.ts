import { formatUsd } from '../../shared/money.ts';
import type { ConsumptionRecord } from '../../domain/consumption.ts';
import { csvColumns, presentRecord, writeCsvLine } from './record.ts';
import type { CsvColumn } from './record.ts';

/** A record as a line of JSON, with all that is stored of it: no other copy will be left. */
export function writeArchivedRecord(record: ConsumptionRecord): string {
  return JSON.stringify({ ...presentRecord(record), unbooked: formatUsd(record.unbookedNanos) });
}

const archiveColumns: readonly CsvColumn[] = [
  ...csvColumns,
  ['unbooked', ({ unbookedNanos }) => formatUsd(unbookedNanos)],
  ['attempts_json', (record) => JSON.stringify(presentRecord(record).attempts)],
];

/** The header line of archived records in CSV. */
export const archivedCsvHeader = `${archiveColumns.map(([name]) => name).join(',')}\r\n`;

/** A record as a line of CSV: no value has a line feed in it. */
export function writeArchivedCsv(record: ConsumptionRecord): string {
  return writeCsvLine(record, archiveColumns);
}

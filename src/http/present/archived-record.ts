import { formatUsd } from '../../shared/money.ts';
import type { ConsumptionRecord } from '../../domain/money/consumption.ts';
import { writeCsvHeader, writeCsvLine } from './csv.ts';
import type { CsvColumn } from './csv.ts';
import { csvColumns, presentRecord } from './record.ts';

/** A record as a line of JSON, with all that is stored of it: no other copy will be left. */
export function writeArchivedRecord(record: ConsumptionRecord): string {
  return JSON.stringify({ ...presentRecord(record), unbooked: formatUsd(record.unbookedNanos) });
}

const archiveColumns: readonly CsvColumn<ConsumptionRecord>[] = [
  ...csvColumns,
  ['unbooked', ({ unbookedNanos }) => formatUsd(unbookedNanos)],
  ['failure_json', ({ failure }) => (failure ? JSON.stringify(failure) : null)],
  ['attempts_json', (record) => JSON.stringify(presentRecord(record).attempts)],
];

/** The header line of archived records in CSV. */
export const archivedCsvHeader = writeCsvHeader(archiveColumns);

/** A record as a line of CSV: no value has a line feed in it. */
export function writeArchivedCsv(record: ConsumptionRecord): string {
  return writeCsvLine(record, archiveColumns);
}

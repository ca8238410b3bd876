import type { ConsumptionRecord, RecordFilter, RecordPage } from '../money/consumption.ts';

/** The consumption record, as it is read. */
export interface RecordPages {
  /** The records behind the one that `before` names, newest first; `null` when it names none of the filter's key. */
  listRecords(filter: RecordFilter, limit: number, before: string | null): Promise<RecordPage | null>;
  /** One record, of one key unless `keyId` is `null`; `null` when there is none. */
  findRecord(requestId: string, keyId: string | null): Promise<ConsumptionRecord | null>;
}

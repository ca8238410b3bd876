import type { z } from 'zod';
import { isRefusal } from '../../shared/errors.ts';
import type { KeyStore } from '../../domain/ports/key-store.ts';
import type { RecordPages } from '../../domain/ports/records.ts';
import type { Retention } from '../../domain/ports/retention.ts';
import type { RunningRequest, RunningRequests } from '../../domain/ports/running-requests.ts';
import type { Refusal } from '../../shared/errors.ts';
import type { RecordPage } from '../../domain/money/consumption.ts';
import { check, pageQuery, pathIdOf, readWholeQuery, unknownCursor } from '../checked-input.ts';
import { presentCancellation, unknownRequest } from '../unknown-ids.ts';
import { isoTime } from '../present/iso-time.ts';
import { presentList } from '../present/list.ts';
import { presentRecord, presentRecordsAsCsv } from '../present/record.ts';
import { presentWait } from '../present/wait.ts';
import { sendCsv } from '../answers/respond.ts';
import { addRoutes } from '../route-table.ts';
import { filterOf, recordFilterFields } from './record-query.ts';
import { createRouter, prefers } from '../router.ts';
import type { Router } from '../router.ts';

/** The dependencies of the routes about past and running requests. */
export interface RecordAdministration
  extends RecordPages, Pick<Retention, 'removedBefore'>, Pick<KeyStore, 'namesOf'> {
  readonly running: Pick<RunningRequests, 'list' | 'cancel'>;
}

/** The query of a list of records. */
export const recordQuery = pageQuery.extend(recordFilterFields);

/** The input of a list of records: times in ISO 8601, and USD as a decimal string. */
export type RecordQuery = z.input<typeof recordQuery>;

/** Reads a page of the usage record, newest first. */
export async function readRecordPage(
  input: unknown,
  administration: RecordAdministration,
): Promise<RecordPage | Refusal> {
  const query = check(input, recordQuery);
  if (isRefusal(query)) return query;
  const filter = await filterOf(query, administration);
  if (isRefusal(filter)) return filter;
  return (await administration.listRecords(filter, query.limit, query.before ?? null)) ?? unknownCursor();
}

/** A page of the usage record as JSON. */
export function presentRecordPage({ records, next }: RecordPage) {
  return presentList(records.map(presentRecord), next);
}

/** Reads one record as JSON. */
export async function readRecord(requestId: string, administration: RecordAdministration) {
  const record = await administration.findRecord(requestId, null);
  return record === null ? unknownRequest('No request has this id.', administration) : presentRecord(record);
}

/** The requests in progress as JSON. */
export async function readRunning({ running }: RecordAdministration) {
  return presentList((await running.list()).map(presentRunning), null);
}

/** Cancels a request in progress. */
export async function cancelRequest(requestId: string, { running }: RecordAdministration) {
  return presentCancellation(requestId, await running.cancel(requestId));
}

/** The routes `/admin/records` and `/admin/in-flight`. */
export function createRecordRoutes(administration: RecordAdministration): Router {
  return addRoutes(createRouter(), {
    'GET /records': async (request, response) => {
      const query = readWholeQuery(request, recordQuery, 'This list');
      const page = isRefusal(query) ? query : await readRecordPage(query, administration);
      if (isRefusal(page)) return page;
      if (!prefers(request, 'csv', 'json')) return presentRecordPage(page);
      sendCsv(response, presentRecordsAsCsv(page.records), page.next);
      return null;
    },
    'GET /records/:id': (request) => readRecord(pathIdOf(request), administration),
    'GET /in-flight': () => readRunning(administration),
    'POST /in-flight/:id/cancel': (request) => cancelRequest(pathIdOf(request), administration),
  });
}

/** A request in progress as JSON. */
export type PresentedRunning = ReturnType<typeof presentRunning>;

function presentRunning(request: RunningRequest) {
  const { requestId, protocol, createdAtMs, keyId, mode, model, upstream, firstTextMs } = request;
  const { listening, joined, node } = request;
  return {
    request_id: requestId,
    key_id: keyId,
    created_at: isoTime(createdAtMs),
    protocol,
    mode,
    model,
    upstream,
    ...presentWait(request),
    first_byte_ms: firstTextMs === null ? null : Math.round(firstTextMs),
    listening,
    joined,
    node,
  };
}

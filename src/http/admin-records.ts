import { Router } from 'express';
import { z } from 'zod';
import { isRefusal } from '../shared/errors.ts';
import type { RecordFilter, RecordPage } from '../domain/consumption.ts';
import type { Running } from '../pipeline/in-flight.ts';
import { check, instant, pageQuery, pathIdOf, unknownCursor } from './checked-input.ts';
import { methodNotAllowed } from './fallback-handlers.ts';
import { isoTime } from './iso-time.ts';
import { presentCancellation } from './present-cancellation.ts';
import { presentList } from './present-list.ts';
import { presentRecord, presentRecordsAsCsv } from './present-record.ts';
import { sendAnswer, sendBody } from './respond.ts';

/** The dependencies of the routes about past and running requests. */
export interface RecordAdministration {
  listRecords(filter: RecordFilter, limit: number, before: string | null): Promise<RecordPage | null>;
  running(): readonly Running[];
  /** Returns false when no request with this id is running. */
  cancel(requestId: string): boolean;
}

const recordQuery = pageQuery.extend({
  key: z.string().optional(),
  model: z.string().optional(),
  from: instant.optional(),
  to: instant.optional(),
});

/** The routes `/admin/records` and `/admin/in-flight`. */
export function createRecordRoutes(administration: RecordAdministration): Router {
  const router = Router();
  router.get('/records', async (request, response) => {
    const query = check(request.query, recordQuery);
    if (isRefusal(query)) return sendAnswer(response, 200, query);
    const { key: keyId, model, from, to, limit, before = null } = query;
    const page = await administration.listRecords({ keyId, model, from, to }, limit, before);
    if (page === null) return sendAnswer(response, 200, unknownCursor());
    const { records, next } = page;
    if (request.accepts(['json', 'csv']) !== 'csv')
      return sendAnswer(response, 200, presentList(records.map(presentRecord), next));
    sendBody(response, 200, presentRecordsAsCsv(records), {
      'content-type': 'text/csv; charset=utf-8',
      ...(next === null ? {} : { 'x-textgate-next': next }),
    });
  });
  router.all('/records', methodNotAllowed('GET'));
  router.get('/in-flight', (_request, response) =>
    sendAnswer(response, 200, presentList(administration.running().map(presentRunning), null)),
  );
  router.all('/in-flight', methodNotAllowed('GET'));
  router.post('/in-flight/:id/cancel', (request, response) => {
    const id = pathIdOf(request);
    sendAnswer(response, 200, presentCancellation(id, administration.cancel(id)));
  });
  router.all('/in-flight/:id/cancel', methodNotAllowed('POST'));
  return router;
}

function presentRunning({ requestId, protocol, arrivedAt, notes }: Running): object {
  return {
    request_id: requestId,
    key_id: notes.key?.id ?? null,
    created_at: isoTime(arrivedAt),
    protocol,
    // The body of a request that waits for a slot is not read yet.
    mode: notes.request === null ? null : notes.stream ? 'stream' : 'sync',
    model: notes.model?.id ?? null,
  };
}

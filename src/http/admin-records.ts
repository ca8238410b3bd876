import { Router } from 'express';
import { z } from 'zod';
import { isRefusal, refuse } from '../shared/errors.ts';
import { instant } from '../shared/schema-values.ts';
import type { RecordPages } from '../domain/ports/record-pages.ts';
import type { RunningRequest, RunningRequests } from '../domain/ports/running-requests.ts';
import { check, pageQuery, pathIdOf, unknownCursor } from './checked-input.ts';
import { methodNotAllowed } from './fallback-handlers.ts';
import { isoTime } from './iso-time.ts';
import { presentCancellation } from './present-cancellation.ts';
import { presentList } from './present-list.ts';
import { presentRecord, presentRecordsAsCsv } from './present-record.ts';
import { sendAnswer, sendBody } from './respond.ts';

/** The dependencies of the routes about past and running requests. */
export interface RecordAdministration extends Pick<RecordPages, 'listRecords' | 'findRecord'> {
  readonly running: Pick<RunningRequests, 'list' | 'cancel'>;
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
  router.get('/records/:id', async (request, response) => {
    const record = await administration.findRecord(pathIdOf(request));
    const answer =
      record === null ? refuse('request_not_found', 'No request has this id.') : presentRecord(record);
    sendAnswer(response, 200, answer);
  });
  router.all('/records/:id', methodNotAllowed('GET'));
  router.get('/in-flight', async (_request, response) => {
    const running = await administration.running.list();
    sendAnswer(response, 200, presentList(running.map(presentRunning), null));
  });
  router.all('/in-flight', methodNotAllowed('GET'));
  router.post('/in-flight/:id/cancel', async (request, response) => {
    const id = pathIdOf(request);
    sendAnswer(response, 200, presentCancellation(id, await administration.running.cancel(id)));
  });
  router.all('/in-flight/:id/cancel', methodNotAllowed('POST'));
  return router;
}

function presentRunning({ requestId, protocol, createdAtMs, keyId, mode, model }: RunningRequest): object {
  return {
    request_id: requestId,
    key_id: keyId,
    created_at: isoTime(createdAtMs),
    protocol,
    mode,
    model,
  };
}

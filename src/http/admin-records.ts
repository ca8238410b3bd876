import { Router } from 'express';
import { z } from 'zod';
import { isRefusal, refuse } from '../shared/errors.ts';
import type { RecordFilter, RecordPage } from '../domain/consumption.ts';
import type { RunningRequest, RunningRequests } from '../domain/ports/running-requests.ts';
import { check, instant, pageQuery, unknownCursor } from './checked-input.ts';
import { methodNotAllowed, sendAnswer, sendBody } from './refusal-response.ts';
import { isoTime } from './present-key.ts';
import { recordsAsCsv, presentRecord } from './present-record.ts';

/** What an operator can see of requests, past and running. */
export interface RecordAdministration {
  listRecords(filter: RecordFilter, limit: number, before: string | null): Promise<RecordPage | null>;
  readonly running: Pick<RunningRequests, 'list' | 'cancel'>;
}

const recordQuery = pageQuery.extend({
  key: z.string().optional(),
  model: z.string().optional(),
  from: instant.optional(),
  to: instant.optional(),
});

/** `/records` and `/in-flight`, below `/admin`. */
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
      return sendAnswer(response, 200, { object: 'list', data: records.map(presentRecord), next });
    sendBody(response, 200, recordsAsCsv(records), {
      'content-type': 'text/csv; charset=utf-8',
      ...(next === null ? {} : { 'x-textgate-next': next }),
    });
  });
  router.all('/records', methodNotAllowed('GET'));
  router.get('/in-flight', async (_request, response) => {
    const running = await administration.running.list();
    sendAnswer(response, 200, { object: 'list', data: running.map(presentRunning), next: null });
  });
  router.all('/in-flight', methodNotAllowed('GET'));
  router.post('/in-flight/:id/cancel', async (request, response) => {
    const { id } = request.params;
    const isCancelled = await administration.running.cancel(id);
    sendAnswer(response, 200, isCancelled ? { request_id: id, cancelled: true } : notRunning());
  });
  router.all('/in-flight/:id/cancel', methodNotAllowed('POST'));
  return router;
}

/** The refusal for a request that is over, or never was. */
export function notRunning(): ReturnType<typeof refuse> {
  return refuse('request_not_found', 'No request with this id is running.');
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

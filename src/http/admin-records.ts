import { Router } from 'express';
import { z } from 'zod';
import { isRefusal, refuse } from '../shared/errors.ts';
import type { RecordPages } from '../domain/ports/record-pages.ts';
import type { Running } from '../pipeline/in-flight.ts';
import { check, instant, pageQuery, unknownCursor } from './checked-input.ts';
import { methodNotAllowed, sendAnswer, sendBody } from './refusal-response.ts';
import { isoTime } from './present-key.ts';
import { recordsAsCsv, presentRecord } from './present-record.ts';

/** What an operator can see of requests, past and running. */
export interface RecordAdministration extends Pick<RecordPages, 'listRecords'> {
  running(): readonly Running[];
  /** False when nothing runs under this id. */
  cancel(requestId: string): boolean;
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
  router.get('/in-flight', (_request, response) =>
    sendAnswer(response, 200, {
      object: 'list',
      data: administration.running().map(presentRunning),
      next: null,
    }),
  );
  router.all('/in-flight', methodNotAllowed('GET'));
  router.post('/in-flight/:id/cancel', (request, response) => {
    const { id } = request.params;
    sendAnswer(response, 200, administration.cancel(id) ? { request_id: id, cancelled: true } : notRunning());
  });
  router.all('/in-flight/:id/cancel', methodNotAllowed('POST'));
  return router;
}

/** The refusal for a request that is over, or never was. */
export function notRunning(): ReturnType<typeof refuse> {
  return refuse('request_not_found', 'No request with this id is running.');
}

function presentRunning({ requestId, protocol, arrivedAt, notes }: Running): object {
  return {
    request_id: requestId,
    key_id: notes.key?.id ?? null,
    created_at: isoTime(arrivedAt),
    protocol,
    // Nothing is read of a request that waits for a slot.
    mode: notes.request === null ? null : notes.stream ? 'stream' : 'sync',
    model: notes.model?.id ?? null,
  };
}

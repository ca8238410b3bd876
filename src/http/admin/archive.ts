import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { z } from 'zod';
import { isRefusal } from '../../shared/errors.ts';
import { instant, storedText } from '../../shared/schema-values.ts';
import type { ConsumptionRecord } from '../../domain/money/consumption.ts';
import type { RecordArchiving } from '../../operations/archive-records.ts';
import { checkQuery, readInput } from '../checked-input.ts';
import { methodNotAllowed } from '../fallback-handlers.ts';
import { archivedCsvHeader, writeArchivedCsv, writeArchivedRecord } from '../present/record.ts';
import { isoTime } from '../present/iso-time.ts';
import { leaveSignalOf, workUntilLeft } from '../answers/respond.ts';
import { addRoutes } from '../route-table.ts';
import type { RouteAnswer } from '../route-table.ts';
import { createRouter, prefers } from '../router.ts';
import { leaveUnnoted } from './acts.ts';
import type { Request, Response, Router } from '../router.ts';

/** How many records one call removes at most: a unit of the database, of some milliseconds. */
const maxRemoved = 500;

/** The query and the body of these routes. */
export const archiveQuery = z.strictObject({ before: instant.optional() });

export const removal = z.strictObject({
  before: instant,
  ended: z.array(storedText).max(maxRemoved),
  lost: z.array(storedText).max(maxRemoved).default([]),
});

/** The routes `/admin/archive`, `/admin/archive/removals` and `/admin/archive/folds`, by which old records leave the database. */
export function createArchiveRoutes(archiving: RecordArchiving): Router {
  const router = createRouter();
  // Express answers HEAD with the GET handler, which would read all old records for nothing.
  router.head('/archive', methodNotAllowed('GET'));
  return addRoutes(router, {
    'GET /archive': (request, response) => sendArchive(request, response, archiving),
    'POST /archive/removals': async (request, response) => {
      const input = await readInput(request, response, removal);
      if (isRefusal(input)) return input;
      const { before, ended, lost } = input;
      const records = [
        ...ended.map((requestId) => ({ requestId, isLost: false })),
        ...lost.map((requestId) => ({ requestId, isLost: true })),
      ];
      const removed = await archiving.remove(records, before);
      if (isRefusal(removed)) return removed;
      if (removed === 0) leaveUnnoted(request);
      return { removed };
    },
    'POST /archive/folds': async (request, response) => {
      const postings = await workUntilLeft(response, (signal) => archiving.fold(signal));
      if (postings === null || isRefusal(postings)) return postings;
      if (postings === 0) leaveUnnoted(request);
      return { postings };
    },
  });
}

async function sendArchive(
  request: Request,
  response: Response,
  archiving: RecordArchiving,
): Promise<RouteAnswer> {
  const query = checkQuery(request, archiveQuery, 'The archive');
  if (isRefusal(query)) return query;
  const found = archiving.read(query.before, leaveSignalOf(response));
  if (isRefusal(found)) return found;
  const isCsv = prefers(request, 'csv', 'json');
  response.writeHead(200, {
    'content-type': isCsv ? 'text/csv; charset=utf-8' : 'application/x-ndjson',
    'x-textgate-before': isoTime(found.beforeMs),
  });
  try {
    await pipeline(Readable.from(isCsv ? csvOf(found.pages) : linesOf(found.pages)), response);
  } catch {
    // The client has disconnected, or the database failed: the answer lacks its end, by which the client sees it.
    response.destroy();
  }
  return null;
}

async function* linesOf(pages: AsyncIterable<readonly ConsumptionRecord[]>): AsyncGenerator<string> {
  for await (const page of pages) yield page.map((record) => `${writeArchivedRecord(record)}\n`).join('');
}

async function* csvOf(pages: AsyncIterable<readonly ConsumptionRecord[]>): AsyncGenerator<string> {
  yield archivedCsvHeader;
  for await (const page of pages) yield page.map(writeArchivedCsv).join('');
}

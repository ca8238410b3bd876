import { pipeline } from 'node:stream/promises';
import { Router } from 'express';
import type { Response } from 'express';
import { isRefusal } from '../shared/errors.ts';
import type { Maintenance } from '../operations/maintenance.ts';
import { methodNotAllowed } from './fallback-handlers.ts';
import { sendAnswer, sendRefusal } from './respond.ts';

/** `/ledger` and `/backup`, below `/admin`. Both may take minutes. */
export function createMaintenanceRoutes(maintenance: Maintenance): Router {
  const router = Router();
  router.get('/ledger', async (_request, response) => {
    const left = new AbortController();
    response.once('close', () => left.abort());
    try {
      sendAnswer(response, 200, await maintenance.verifyLedger(left.signal));
    } catch (error) {
      if (!left.signal.aborted) throw error;
    }
  });
  router.all('/ledger', methodNotAllowed('GET'));
  // Express would answer HEAD by GET, and copy the database for nothing.
  router.head('/backup', methodNotAllowed('GET'));
  router.get('/backup', (_request, response) => sendBackup(response, maintenance));
  router.all('/backup', methodNotAllowed('GET'));
  return router;
}

async function sendBackup(response: Response, maintenance: Maintenance): Promise<void> {
  const copy = await maintenance.backUp();
  if (isRefusal(copy)) return sendRefusal(response, copy);
  try {
    response.writeHead(200, {
      'content-type': 'application/vnd.sqlite3',
      'content-length': copy.bytes,
      'content-disposition': 'attachment; filename="textgate.db"',
    });
    await pipeline(copy.read(), response);
  } catch {
    // The client left, or the disk failed: by the length it knows that the copy is not whole.
    response.destroy();
  } finally {
    await copy.remove();
  }
}

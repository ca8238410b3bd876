import { z } from 'zod';
import type { KeyManagement } from '../../operations/manage-keys.ts';
import type { Statements } from '../../operations/statements.ts';
import { isRefusal } from '../../shared/errors.ts';
import type { LedgerRoot } from '../../domain/statements/root.ts';
import { checkQuery, pageQuery, pathIdOf } from '../checked-input.ts';
import { methodNotAllowed } from '../fallback-handlers.ts';
import { isoTime } from '../present/iso-time.ts';
import { presentList } from '../present/list.ts';
import { sendAnswer, sendRefusal } from '../answers/respond.ts';
import { createRouter } from '../router.ts';
import type { Router } from '../router.ts';
import { makeStatement, sendStatement } from '../statement-routes.ts';

const rootNumbers = 'expected the number of a root';

/** The query of the list of roots. */
export const rootQuery = pageQuery.extend({
  before: z.coerce.number<number | string>(rootNumbers).int(rootNumbers).min(1, rootNumbers).optional(),
});

/** The routes `/admin/keys/{id}/statement` and `/admin/ledger/roots`. */
export function createStatementRoutes(statements: Statements, keys: Pick<KeyManagement, 'show'>): Router {
  const router = createRouter();
  router.get('/keys/:id/statement', async (request, response) => {
    const key = await keys.show(pathIdOf(request));
    sendStatement(response, isRefusal(key) ? key : await makeStatement(request, key, statements));
  });
  router.all('/keys/:id/statement', methodNotAllowed('GET'));
  router.get('/ledger/roots', async (request, response) => {
    const query = checkQuery(request, rootQuery, 'This list');
    if (isRefusal(query)) return sendRefusal(response, query);
    const roots = await statements.roots(query.before ?? null, query.limit);
    const last = roots.length < query.limit ? undefined : roots.at(-1);
    sendAnswer(
      response,
      200,
      presentList(roots.map(presentRoot), last === undefined ? null : String(last.number)),
    );
  });
  router.all('/ledger/roots', methodNotAllowed('GET'));
  return router;
}

function presentRoot({ number, madeAtMs, accounts, tree, previous, hash }: LedgerRoot) {
  return { number, created_at: isoTime(madeAtMs), accounts, tree, previous, hash };
}

import { z } from 'zod';
import type { KeyManagement } from '../../operations/manage-keys.ts';
import type { Statements } from '../../operations/statements.ts';
import { isRefusal } from '../../shared/errors.ts';
import type { LedgerRoot } from '../../domain/statements/root.ts';
import { checkQuery, pageQuery, pathIdOf } from '../checked-input.ts';
import { isoTime } from '../present/iso-time.ts';
import { presentList } from '../present/list.ts';
import { addRoutes } from '../route-table.ts';
import { createRouter } from '../router.ts';
import type { Router } from '../router.ts';
import { answerStatement, makeStatement } from '../statement-routes.ts';

const rootNumbers = 'expected the number of a root';

/** The query of the list of roots. */
export const rootQuery = pageQuery.extend({
  before: z.coerce.number<number | string>(rootNumbers).int(rootNumbers).min(1, rootNumbers).optional(),
});

/** The routes `/admin/keys/{id}/statement` and `/admin/ledger/roots`. */
export function createStatementRoutes(statements: Statements, keys: Pick<KeyManagement, 'show'>): Router {
  return addRoutes(createRouter(), {
    'GET /keys/:id/statement': async (request, response) => {
      const key = await keys.show(pathIdOf(request));
      return answerStatement(response, isRefusal(key) ? key : await makeStatement(request, key, statements));
    },
    'GET /ledger/roots': async (request) => {
      const query = checkQuery(request, rootQuery, 'This list');
      if (isRefusal(query)) return query;
      const roots = await statements.roots(query.before ?? null, query.limit);
      const last = roots.length < query.limit ? undefined : roots.at(-1);
      return presentList(roots.map(presentRoot), last === undefined ? null : String(last.number));
    },
  });
}

function presentRoot({ number, madeAtMs, accounts, tree, previous, hash }: LedgerRoot) {
  return { number, created_at: isoTime(madeAtMs), accounts, tree, previous, hash };
}

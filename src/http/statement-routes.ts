import { z } from 'zod';
import type { StatementPeriod, Statements } from '../operations/statements.ts';
import { isRefusal } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import { instant } from '../shared/schema-values.ts';
import { checkQuery } from './checked-input.ts';
import { isoTime } from './present/iso-time.ts';
import { sendBody } from './answers/respond.ts';
import { addRoutes } from './route-table.ts';
import type { RouteAnswer } from './route-table.ts';
import { createRouter } from './router.ts';
import type { Request, Response, Router } from './router.ts';

const rowNumbers = 'expected the number of a row, as the closing line of a statement has it';

/** The query of a statement. */
export const statementQuery = z.strictObject({
  from: instant.optional(),
  to: instant.optional(),
  after: z.coerce.number<number | string>(rowNumbers).int(rowNumbers).min(0, rowNumbers).optional(),
});

/** Makes the statement that a request asks for; its text, or the refusal. */
export async function makeStatement(
  request: Request,
  account: { readonly id: string; readonly name: string },
  statements: Pick<Statements, 'make'>,
): Promise<{ readonly text: string } | Refusal> {
  const query = checkQuery(request, statementQuery, 'A statement');
  if (isRefusal(query)) return query;
  const { from = null, to = null, after = null } = query;
  const period: StatementPeriod = { fromMs: from, toMs: to, after };
  const made = await statements.make(account, period);
  return isRefusal(made) ? made : { text: made };
}

/** Sends a statement as it is signed, byte for byte. */
export function answerStatement(response: Response, made: { readonly text: string } | Refusal): RouteAnswer {
  if (isRefusal(made)) return made;
  sendBody(response, 200, made.text, { 'content-type': 'text/plain; charset=utf-8' });
  return null;
}

/** The route of the keys by which statements are checked. Anyone may read them: they are as public as a statement's reader. */
export function createStatementKeyRoutes(statements: Pick<Statements, 'keys'>): Router {
  return addRoutes(createRouter({ caseSensitive: true }), {
    'GET, HEAD /v1/statement-keys': async () => presentKeys(await statements.keys()),
  });
}

function presentKeys({ current, keys, root }: Awaited<ReturnType<Statements['keys']>>) {
  return {
    object: 'list',
    data: keys.map(({ id, pem, createdAtMs }) => ({
      id,
      algorithm: 'Ed25519',
      public_key: pem,
      created_at: isoTime(createdAtMs),
      active: id === current,
    })),
    root: root === null ? null : { number: root.number, created_at: isoTime(root.madeAtMs), hash: root.hash },
  };
}

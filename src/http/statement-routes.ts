import { z } from 'zod';
import type { StatementPeriod, Statements } from '../operations/statements.ts';
import { isRefusal } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import { instant } from '../shared/schema-values.ts';
import { check, readWholeQuery } from './checked-input.ts';
import { methodNotAllowed } from './fallback-handlers.ts';
import { isoTime } from './present/iso-time.ts';
import { sendAnswer, sendBody, sendRefusal } from './answers/respond.ts';
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
  const given = readWholeQuery(request, statementQuery, 'A statement');
  const query = isRefusal(given) ? given : check(given, statementQuery);
  if (isRefusal(query)) return query;
  const { from = null, to = null, after = null } = query;
  const period: StatementPeriod = { fromMs: from, toMs: to, after };
  const made = await statements.make(account, period);
  return isRefusal(made) ? made : { text: made };
}

/** Sends a statement as it is signed, byte for byte. */
export function sendStatement(response: Response, made: { readonly text: string } | Refusal): void {
  if (isRefusal(made)) return sendRefusal(response, made);
  sendBody(response, 200, made.text, { 'content-type': 'text/plain; charset=utf-8' });
}

/** The route of the keys by which statements are checked. Anyone may read them: they are as public as a statement's reader. */
export function createStatementKeyRoutes(statements: Pick<Statements, 'keys'>): Router {
  const router = createRouter({ caseSensitive: true });
  router.get('/v1/statement-keys', async (_request, response) => {
    const { current, keys, root } = await statements.keys();
    sendAnswer(response, 200, {
      object: 'list',
      data: keys.map(({ id, pem, createdAtMs }) => ({
        id,
        algorithm: 'Ed25519',
        public_key: pem,
        created_at: isoTime(createdAtMs),
        active: id === current,
      })),
      root:
        root === null ? null : { number: root.number, created_at: isoTime(root.madeAtMs), hash: root.hash },
    });
  });
  router.all('/v1/statement-keys', methodNotAllowed('GET, HEAD'));
  return router;
}

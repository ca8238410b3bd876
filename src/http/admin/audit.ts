import { z } from 'zod';
import { auditActions } from '../../domain/audit/audit-line.ts';
import type { AuditTrail } from '../../domain/ports/audit.ts';
import type { KeyStore } from '../../domain/ports/key-store.ts';
import { isRefusal } from '../../shared/errors.ts';
import { instant, storedText } from '../../shared/schema-values.ts';
import { sendCsv } from '../answers/respond.ts';
import { checkQuery, endsTooEarly, pageQuery } from '../checked-input.ts';
import { presentAuditAsCsv, presentAuditLine } from '../present/audit.ts';
import { presentList } from '../present/list.ts';
import { addRoutes } from '../route-table.ts';
import { findUnknownKey } from '../unknown-ids.ts';
import { createRouter, prefers } from '../router.ts';
import type { Router } from '../router.ts';

/** The longest text that is searched for, in characters. */
const maxSearchLength = 200;

/** The query of the audit. An empty search, as of an empty field of a form, finds all lines. */
export const auditQuery = pageQuery.extend({
  from: instant.optional(),
  to: instant.optional(),
  actor: storedText.optional(),
  action: z.enum(auditActions).optional(),
  key: storedText.optional(),
  search: storedText.max(maxSearchLength).optional(),
  before: z
    .string()
    .regex(/^\d{1,15}$/, 'expected the number of a line, as the `next` of a page is')
    .transform(Number)
    .optional(),
});

/** The route `/admin/audit`. */
export function createAuditRoutes(trail: Pick<AuditTrail, 'list'>, keys: Pick<KeyStore, 'namesOf'>): Router {
  return addRoutes(createRouter(), {
    'GET /audit': async (request, response) => {
      const query = checkQuery(request, auditQuery, 'The audit');
      if (isRefusal(query)) return query;
      const { from: fromMs, to: toMs, key: keyId, limit, before = null, ...others } = query;
      if (fromMs !== undefined && toMs !== undefined && toMs <= fromMs) return endsTooEarly();
      const unknown = await findUnknownKey(keyId, keys);
      if (unknown !== null) return unknown;
      const { lines, next } = await trail.list({ ...others, fromMs, toMs, keyId }, limit, before);
      const cursor = next === null ? null : String(next);
      if (!prefers(request, 'csv', 'json')) return presentList(lines.map(presentAuditLine), cursor);
      sendCsv(response, presentAuditAsCsv(lines), cursor);
      return null;
    },
  });
}

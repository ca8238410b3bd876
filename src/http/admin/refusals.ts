import { z } from 'zod';
import type { Refusals } from '../../domain/ports/refusals.ts';
import { dayMs, dayOf } from '../../shared/duration.ts';
import { isRefusal, refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import { instant } from '../../shared/schema-values.ts';
import { checkQuery, entryCount } from '../checked-input.ts';
import { isoTime } from '../present/iso-time.ts';
import { presentList } from '../present/list.ts';
import { presentRefusedKey } from '../present/refused-key.ts';
import { addRoutes } from '../route-table.ts';
import { createRouter } from '../router.ts';
import type { Router } from '../router.ts';

/** How many keys are listed, at most and by default. */
const keyCount = entryCount(200, 50);

/** The query of the refused requests. */
export const refusalQuery = z.strictObject({
  from: instant.optional(),
  to: instant.optional(),
  limit: keyCount,
});

/** What is read for refused requests. */
export interface RefusalReads {
  readonly refusals: Pick<Refusals, 'most'>;
  readonly namesOf: (keyIds: readonly string[]) => Promise<ReadonlyMap<string, string>>;
  readonly now: () => number;
}

/** The route `/admin/refusals`: whose requests this gateway's own limits refused, and which limits did. */
export function createRefusalRoutes(reads: RefusalReads): Router {
  return addRoutes(createRouter(), {
    'GET /refusals': async (request) => {
      const query = checkQuery(request, refusalQuery, 'The list of refusals');
      return isRefusal(query) ? query : listRefusals(query, reads);
    },
  });
}

/** Lists the keys with the most refused requests on the days, in UTC, that a time has a part of. */
async function listRefusals(
  { from, to, limit }: z.output<typeof refusalQuery>,
  { refusals, namesOf, now }: RefusalReads,
): Promise<object | Refusal> {
  const endMs = to ?? now() + 1;
  const fromMs = dayOf(from ?? endMs - 1);
  if (from !== undefined && endMs <= from)
    return refuse('invalid_value', "Invalid 'to': expected a time after 'from'.", { param: 'to' });
  const toMs = dayOf(endMs - 1) + dayMs;
  const found = await refusals.most(fromMs, toMs, limit);
  const names = await namesOf(found.map(({ keyId }) => keyId));
  const rows = found.map((refused) => presentRefusedKey(refused, names));
  return { ...presentList(rows, null), from: isoTime(fromMs), to: isoTime(toMs) };
}

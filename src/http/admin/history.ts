import { z } from 'zod';
import { historyGroupings } from '../../domain/history/counts.ts';
import { longestHistoryMs } from '../../operations/read-history.ts';
import type { History, HistoryQuery } from '../../operations/read-history.ts';
import { isRefusal, refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import { instant } from '../../shared/schema-values.ts';
import { checkQuery, namesAmong } from '../checked-input.ts';
import { presentHistory } from '../present/history.ts';
import { addRoutes } from '../route-table.ts';
import { createRouter } from '../router.ts';
import type { Request, Router } from '../router.ts';

/** How much of the past is shown where a query does not say it, in milliseconds. */
const usualMs = 900_000;

/** The query of a history. */
export const historyQuery = z.strictObject({
  from: instant.optional(),
  to: instant.optional(),
  by: namesAmong(['upstream', 'model']),
});

/** The dependencies of the history's route. */
export interface HistoryPorts {
  readonly now: () => number;
  readonly read: (query: HistoryQuery) => Promise<History>;
}

/** The route `/admin/history`. */
export function createHistoryRoutes({ now, read }: HistoryPorts): Router {
  return addRoutes(createRouter(), {
    'GET /history': async (request) => {
      const query = readQuery(request, now());
      return isRefusal(query) ? query : presentHistory(await read(query));
    },
  });
}

function readQuery(request: Request, nowMs: number): HistoryQuery | Refusal {
  const query = checkQuery(request, historyQuery, 'The history');
  if (isRefusal(query)) return query;
  const { to: toMs = nowMs, from: fromMs = toMs - usualMs } = query;
  if (toMs <= fromMs)
    return refuse('invalid_value', "Invalid 'to': expected a time after 'from'.", { param: 'to' });
  if (toMs - fromMs > longestHistoryMs) {
    const message =
      "Invalid 'from': expected a time at most 24 h before 'to'. Use /admin/usage for longer ones.";
    return refuse('invalid_value', message, { param: 'from' });
  }
  const by = historyGroupings.find((grouping) => grouping === query.by.toSorted().toReversed().join(','));
  return { fromMs, toMs, by: by ?? '' };
}

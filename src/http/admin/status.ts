import { z } from 'zod';
import { maxStatusRows } from '../../operations/read-status.ts';
import type { Status } from '../../operations/read-status.ts';
import { isRefusal } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import { check, entryCount, readQuery } from '../checked-input.ts';
import { isStillAllowed } from './guard.ts';
import { presentStatus } from '../present/status.ts';
import type { PresentedStatus } from '../present/status.ts';
import { addRoutes } from '../route-table.ts';
import { createRouter, prefers } from '../router.ts';
import type { Router } from '../router.ts';
import type { StatusWatch } from './status-watch.ts';

/** How many requests in progress a status shows unless more are asked for. */
const defaultRows = 100;

/** The query of a status. */
export const statusQuery = z.strictObject({
  limit: entryCount(maxStatusRows, defaultRows),
});

/** The input of a status. */
export type StatusQuery = z.input<typeof statusQuery>;

/** The dependencies of the status's route. */
export interface StatusPorts {
  read(): Promise<Status>;
  readonly watch: Pick<StatusWatch, 'add'>;
}

/** Reads the status as JSON. */
export async function readStatusAs(
  input: unknown,
  { read }: Pick<StatusPorts, 'read'>,
): Promise<PresentedStatus | Refusal> {
  const query = check(input, statusQuery);
  return isRefusal(query) ? query : presentStatus(await read(), query.limit);
}

/** The route `/admin/status`: JSON once, or a stream of server-sent events. */
export function createStatusRoutes(ports: StatusPorts): Router {
  return addRoutes(createRouter(), {
    'GET /status': async (request, response) => {
      const input = readQuery(request, statusQuery);
      // Express answers HEAD with the GET handler, for which a stream would have no end.
      if (request.method === 'HEAD' || !prefers(request, 'text/event-stream', 'json'))
        return readStatusAs(input, ports);
      const query = check(input, statusQuery);
      if (isRefusal(query)) return query;
      return ports.watch.add(response, query.limit, () => isStillAllowed(request));
    },
  });
}

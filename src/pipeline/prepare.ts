import { isRefusal } from '../shared/errors.ts';
import type { ApiKey } from '../domain/keys/api-key.ts';
import type { Exchange } from './exchange.ts';
import { limitCost } from './money/limit-cost.ts';
import { openingFor } from './money/reserve.ts';
import { normalize } from './normalize.ts';
import type { Ports } from './ports.ts';
import { route } from './route.ts';
import type { Admission, Prepared } from './stages.ts';

/**
 * Reads a request whose body has arrived before it is admitted, so that its slot and its record are one call of a database that
 * nodes share. `null` where they are two: one whose body is on its way is not read without a slot, one that is refused takes its
 * slot first, as a refusal by a limit comes before one for what was asked, and so does one that needs a permit of an upstream,
 * for which it may wait.
 */
export async function prepare(
  key: ApiKey,
  admission: Pick<Admission, 'tag' | 'group' | 'limits'>,
  exchange: Exchange,
  ports: Ports,
): Promise<Prepared | null> {
  const { client, protocol, arrivedMs } = exchange;
  const { clock, limiter, records, upstreamLimiters } = ports;
  if (protocol === 'passthrough' || limiter.beginsRecords !== true) return null;
  if (!client.hasBody || !records.takesWrites) return null;
  if (limiter.knownRefusal(key.id, admission.limits) !== null) return null;
  const bytes = await client.readBody();
  if (isRefusal(bytes)) return null;
  exchange.body = bytes;
  const request = await normalize(protocol, key, exchange, ports);
  if (isRefusal(request)) return null;
  const routed = await route(key, request, ports);
  const work = isRefusal(routed) ? routed : limitCost(routed, client);
  if (isRefusal(work) || work.routes.some((way) => upstreamLimiters.limits(way))) return null;
  const queuedMs = clock.monotonicMs() - arrivedMs;
  return { work, opening: openingFor(key, admission, work, queuedMs, exchange, ports) };
}

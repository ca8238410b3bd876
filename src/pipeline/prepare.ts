import { isRefusal } from '../shared/errors.ts';
import type { ApiKey } from '../domain/keys/api-key.ts';
import type { Exchange } from './exchange.ts';
import { limitCost } from './money/limit-cost.ts';
import { openingFor } from './money/reserve.ts';
import { normalize } from './normalize.ts';
import type { Ports } from './ports.ts';
import { route } from './route.ts';
import type { Admission, Prepared } from './stages.ts';

/** The longest body that is read without a slot, in bytes: what a connection may have sent with a head. */
const maxBytes = 65_536;

/**
 * Reads a request whose body has arrived before it is admitted, so that its slot and its record are one call of a database
 * that nodes share. It waits for nothing: a body that is on its way is not read without a slot, nor is a list of models
 * fetched. `null` for what is left to be read with a slot, and for what is refused, since a refusal by a limit comes first. A
 * request that needs a permit of an upstream, for which it may wait, or has a claim, has its record begun later.
 */
export async function prepare(
  key: ApiKey,
  admission: Pick<Admission, 'tag' | 'group' | 'limits'>,
  exchange: Exchange,
  ports: Ports,
): Promise<Prepared | null> {
  const { client, protocol, arrivedMs } = exchange;
  const { clock, limiter, models, records, upstreamLimiters } = ports;
  if (protocol === 'passthrough' || limiter.beginsRecords !== true || !records.takesWrites) return null;
  const { arrivedBytes } = client;
  if (arrivedBytes === 0 || arrivedBytes > maxBytes) return null;
  if (limiter.knownRefusal(key.id, admission.limits) !== null) return null;
  const bytes = await client.readBody();
  if (isRefusal(bytes)) return null;
  exchange.body = bytes;
  const request = await normalize(protocol, key, exchange, ports);
  if (isRefusal(request) || !models.knows(request.model)) return null;
  const routed = await route(key, request, ports);
  const work = isRefusal(routed) ? routed : limitCost(routed, client);
  if (isRefusal(work)) return null;
  // A claim is written before its record.
  if ((exchange.claim?.claim ?? null) !== null || work.routes.some((way) => upstreamLimiters.limits(way)))
    return { work, opening: null };
  const queuedMs = clock.monotonicMs() - arrivedMs;
  return { work, opening: openingFor(key, admission, work, queuedMs, exchange, ports) };
}

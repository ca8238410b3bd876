import type { Refusal } from '../shared/errors.ts';
import type { ApiKey } from '../domain/api-key.ts';
import type { TextRequest } from '../protocol/text.ts';
import type { Route } from '../domain/routing.ts';
import { storageUnavailable } from '../domain/storage-refusal.ts';
import type { Exchange, Ports } from './exchange.ts';

/**
 * Begins the consumption record. It is written while the upstream call starts, and must be there before the
 * client gets a byte: what can't be recorded is not served.
 */
export async function reserve(
  key: ApiKey,
  request: TextRequest,
  chosen: Route,
  exchange: Exchange,
  ports: Ports,
): Promise<Refusal | null> {
  exchange.notes.dispatchedMs = ports.clock.monotonicMs();
  try {
    await ports.records.open({
      requestId: exchange.requestId,
      keyId: key.id,
      createdAt: exchange.arrivedAt,
      protocol: exchange.protocol,
      mode: request.stream ? 'stream' : 'sync',
      model: request.model,
      upstream: chosen.upstream,
      queuedMs: exchange.notes.dispatchedMs - exchange.arrivedMs,
    });
  } catch (error) {
    ports.telemetry.fault('a consumption record could not be begun', error);
    return storageUnavailable();
  }
  exchange.notes.recorded = true;
  return null;
}

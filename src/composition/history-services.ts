import { keepHistory } from '../background/history/keep-history.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { HistoryPorts } from '../http/admin/history.ts';
import { readHistory } from '../operations/read-history.ts';
import { createHistory } from '../storage/history.ts';
import type { Log } from '../telemetry/log/logger.ts';
import { watchProcessLoad } from '../telemetry/process-load.ts';
import type { ActiveConfig } from './active-config.ts';
import { nextId } from './next-id.ts';
import type { Observability } from './observability.ts';
import type { StorageServices } from './storage/storage-services.ts';

/** The history of this process, which it keeps in the database, and of all that use the same one. */
export function composeHistory(
  { engine, recovered, shared }: StorageServices,
  active: () => ActiveConfig,
  { clock, log, addSink }: { readonly clock: Clock; readonly log: Log } & Pick<Observability, 'addSink'>,
) {
  const store = createHistory(engine);
  const load = watchProcessLoad();
  const kept = keepHistory(store, {
    ready: recovered,
    clock,
    onFault: log.fault,
    nextId: () => nextId(clock.now()),
    node: shared?.name ?? null,
    readLoad: () => load.read(),
    upstreamStates: () => active().upstreamStates(),
  });
  addSink(kept.sink);
  return {
    mark: kept.mark,
    /** What operators read. */
    reads: {
      now: () => clock.now(),
      read: (query) => readHistory(query, { store, clock }),
    } satisfies HistoryPorts,
    /** Resolves when the last interval is stored, or could not be. */
    async stop(): Promise<void> {
      await kept.stop();
      load.stop();
    },
  };
}

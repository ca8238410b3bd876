import { systemClock } from '../../../src/composition/clock.ts';
import { nextId } from '../../../src/composition/next-id.ts';
import { createPostgresEngine } from '../../../src/storage/postgres/engine.ts';
import { createSlotStore } from '../../../src/storage/postgres/slots/slot-store.ts';
import { createStore } from '../../../src/storage/store.ts';
import { beginningOf, openedRecord, payingKey, settledRecord } from '../../support/stored-rows.ts';

/** The limits of the keys, which no call reaches. */
const limits = { concurrency: 1_000, requestsPerMinute: 10_000_000, queueWaitMs: 0 };

const balanceNanos = 1e15;

/** The calls that a request makes, in their order; the last one frees its slot, too. */
export const callNames = ['begin_record', 'settle_record'] as const;

/** One of these calls for a request, whose number chooses its key. */
type DatabaseCall = (request: number, requestId: string) => Promise<unknown>;

/** Makes the calls of requests by themselves, without a gateway, as a process with a lease of its own. */
export interface CallingProcess {
  readonly calls: { readonly [Name in (typeof callNames)[number]]: DatabaseCall };
  close(): Promise<void>;
}

/** Opens a database for calls, and gives it so many keys with a balance. */
export async function openForCalls(url: string, keys: number): Promise<CallingProcess> {
  const engine = createPostgresEngine({ url, clock: systemClock });
  const store = createStore(engine, { nextId, now: () => Date.now(), report: () => {} });
  const slots = createSlotStore(engine, () => store.owner(), store.openingOf);
  await engine.ready;
  await store.renewLease();
  const keyIds = Array.from({ length: keys }, () => nextId());
  await Promise.all(
    keyIds.map((id) => store.createKey({ ...payingKey, id, name: id }, nextId(), balanceNanos)),
  );
  const keyOf = (request: number): string => keyIds[request % keys] ?? '';
  const openedOf = (request: number, requestId: string) => ({
    ...openedRecord,
    requestId,
    keyId: keyOf(request),
    createdAtMs: Date.now(),
  });
  // The first record of a kind is begun by itself.
  const first = openedOf(0, `req_${nextId()}`);
  await store.open(first);
  await store.settle({ ...settledRecord, requestId: first.requestId, begun: beginningOf(first) });
  return {
    calls: {
      begin_record: (request, requestId) =>
        slots.take({
          keyId: keyOf(request),
          requestId,
          limits,
          mayWait: false,
          opening: openedOf(request, requestId),
        }),
      settle_record: (request, requestId) =>
        store.settle({ ...settledRecord, requestId, begun: beginningOf(openedOf(request, requestId)) }),
    },
    async close() {
      await store.endLease();
      await engine.close();
    },
  };
}

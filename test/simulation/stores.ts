import type { RecordLeases } from '../../src/domain/ports/leases.ts';
import type { OpenRecords, RecoverableRecords } from '../../src/domain/ports/records.ts';
import type { SlotStore } from '../../src/domain/ports/slot-store.ts';
import type { Engine, FixedUnit, ResultRow, SqlValue, Statement } from '../../src/storage/engine.ts';
import { createLeases, endOverLeases } from '../../src/storage/leases.ts';
import type { Wire } from './wire.ts';
import type { World } from './world.ts';

/** The names of connections beside those of keys. */
const statements = 'statements';
const own = 'own';
const reads = 'reads';

/** The leases of one process: the real ones, over the units that the database knows. */
export function simulateLeases(wire: Wire, world: World, nextId: () => string): RecordLeases {
  const { leases } = world.database;
  const endOverSql = endOverLeases('').sql;
  const call = ({ name }: FixedUnit, values: readonly SqlValue[]): Promise<ResultRow> => {
    const [owner, next] = values.map(String);
    if (name === 'renew_lease')
      return wire.call('renew lease', own, () => {
        leases.renew(String(owner), String(next));
        return [leases.has(String(next)) ? 1 : 0];
      });
    if (name !== 'end_lease') throw new Error(`no such unit: ${name}`);
    return wire.call('end own lease', own, () => {
      leases.end(String(owner));
      return [0];
    });
  };
  const run = (unit: readonly Statement[]): Promise<readonly (readonly object[])[]> => {
    const {
      sql,
      values: [value],
    } = unit.at(-1) ?? { sql: '', values: [] };
    if (sql !== endOverSql) throw new Error(`no such unit: ${sql}`);
    const owner = String(value);
    return wire.call('end leases', statements, () => {
      const over = leases.over(owner);
      for (const id of over) {
        leases.end(id);
        world.checks.leases.ended(id, owner);
      }
      return [[], over.map((id) => ({ id }))];
    });
  };
  const lookUp = ([statement]: readonly Statement[]): Promise<readonly (readonly object[])[]> => {
    const owner = String(statement?.values[0]);
    return wire.call('look at leases', reads, () => [leases.over(owner).map((id) => ({ id }))]);
  };
  return createLeases({ run, call, lookUp } as unknown as Engine, { id: nextId() }, nextId);
}

/** The records of one process in the database. */
export function simulateRecords(
  wire: Wire,
  { database, checks }: World,
  owner: () => string,
): RecoverableRecords & OpenRecords {
  const { books } = database;
  return {
    open(record) {
      const by = owner();
      return wire.call(`begin ${record.requestId}`, record.keyId, () => {
        const reservation = books.begin(by, record);
        checks.money.begun(record, reservation);
        if (!database.leases.has(by)) checks.leases.late.add(record.requestId);
        return reservation;
      });
    },
    settle(record) {
      return wire.call(`settle ${record.requestId}`, record.begun.keyId, () => {
        books.settle(record);
        checks.money.settled(record);
        return 0;
      });
    },
    isSettled: (record) => wire.call('is settled', reads, () => books.isSettled(record)),
    closeLostRecords: () =>
      wire.call('close lost records', statements, () => checks.closed(books.closeLost())),
    checkWrites: () => wire.call('check writes', own, () => {}),
    countOpen: () => wire.call('count open', reads, () => books.open.size),
    listClosable(ownBeforeMs, ownAfterMs) {
      const by = owner();
      return wire.call('list closable', statements, () => books.closable(by, ownBeforeMs, ownAfterMs));
    },
    closeAsLost(requestIds) {
      const by = owner();
      return wire.call('close as lost', statements, () => checks.closed(books.closeSome(by, requestIds)));
    },
  };
}

/** The slots of one process in the database. */
export function simulateSlots(wire: Wire, { database, counts }: World, owner: () => string): SlotStore {
  // What a call is made for is decided when it is sent, not when it arrives.
  let now = { owner: owner(), store: database.slots.storeOf(() => '') };
  const current = (): SlotStore => {
    const by = owner();
    if (now.owner !== by || isFirst) now = { owner: by, store: database.slots.storeOf(() => by) };
    isFirst = false;
    return now.store;
  };
  let isFirst = true;
  return {
    owner,
    take(request) {
      const store = current();
      return wire.call(`take ${request.requestId}`, request.keyId, () => store.take(request));
    },
    release(keyId, requestId) {
      const store = current();
      return wire.call(`release ${requestId}`, keyId, () => store.release(keyId, requestId));
    },
    endedWaits() {
      const store = current();
      return wire.call('ended waits', owner(), () => store.endedWaits());
    },
    followLimits(defaults, groups) {
      const store = current();
      return wire.call('follow limits', owner(), () => store.followLimits(defaults, groups));
    },
    leave(request) {
      const store = current();
      return wire.call(`leave ${request.requestId}`, request.keyId, () => store.leave(request));
    },
    held() {
      const store = current();
      return wire.call('held', reads, () => store.held());
    },
    restore(keyId, requestIds) {
      const store = current();
      return wire.call(`restore of ${keyId}`, keyId, async () => {
        const restored = await store.restore(keyId, requestIds);
        counts['slots restored of running requests'] += restored;
        return restored;
      });
    },
    freeLost() {
      const store = current();
      return wire.call('free lost', '', async () => {
        const freed = await store.freeLost();
        counts['slots and places freed of ended leases'] += freed;
        return freed;
      });
    },
    forgetStarts(afterKeyId) {
      const store = current();
      return wire.call('forget starts', '', () => store.forgetStarts(afterKeyId));
    },
  };
}

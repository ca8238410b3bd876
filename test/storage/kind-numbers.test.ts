import { expect, onTestFinished, test } from 'vitest';
import { createKindNumbers } from '../../src/storage/records/kind-numbers.ts';
import { openKind } from '../../src/storage/records/record-kinds.ts';
import { createStore } from '../../src/storage/store.ts';
import { requestIdFor } from '../support/request-ids.ts';
import { beginningOf, openedRecord, payingKey, settledRecord } from '../support/stored-rows.ts';
import { openTestEngine } from '../support/test-engine.ts';

const kindOf = (model: string) => openKind({ ...beginningOf(openedRecord), model });

function open() {
  const engine = openTestEngine(':memory:');
  onTestFinished(() => engine.close());
  const run = (sql: string) => engine.run([{ sql, values: [] }]);
  return { engine, run };
}

test('each kind has one number, on every process', async () => {
  const { engine, run } = open();
  const [one, other] = [createKindNumbers(engine), createKindNumbers(engine)];
  const asked = await Promise.all([one, other, one].map((numbers) => numbers.ask(kindOf('m'))));
  expect(new Set(asked).size).toBe(1);
  expect(await one.ask(kindOf('n'))).not.toBe(asked[0]);
  expect([one.find(kindOf('m')), other.find(kindOf('n'))]).toEqual([asked[0], undefined]);
  const [rows] = await run('SELECT model FROM record_kinds ORDER BY model');
  expect(rows).toEqual([{ model: 'm' }, { model: 'n' }]);
});

test('a kind whose number another one has gets the next one that is made of what it says', async () => {
  const { engine, run } = open();
  const wanted = await createKindNumbers(engine).ask(kindOf('m'));
  await run('DROP TRIGGER kind_is_never_changed');
  await run("UPDATE record_kinds SET model = 'taken'");
  const numbers = createKindNumbers(engine);
  const found = await numbers.ask(kindOf('m'));
  expect(found).not.toBe(wanted);
  expect(await createKindNumbers(engine).ask(kindOf('m'))).toBe(found);
});

test('a settlement names its kind again in a database that has forgotten it, and is read as it was', async () => {
  const { engine, run } = open();
  const faults: string[] = [];
  const store = createStore(engine, {
    nextId: () => 'id',
    now: () => 7,
    report: (fault) => void faults.push(fault),
  });
  await store.createKey(payingKey, 'hash', 1_000);
  for (const [at, name] of ['a', 'b'].entries()) {
    await store.settle({ ...settledRecord, requestId: requestIdFor(name) });
    if (at > 0) continue;
    await run('DROP TRIGGER kind_is_never_removed');
    await run('DELETE FROM record_kinds');
  }
  expect(await store.findRecord(requestIdFor('b'), null)).toMatchObject({
    model: 'm',
    outcome: 'completed',
    chargeNanos: 1,
  });
  expect((await store.accounts([payingKey.id])).get(payingKey.id)?.spentNanos).toBe(2);
  await expect(store.settle({ ...settledRecord, requestId: requestIdFor('b') })).rejects.toThrow(
    'no open record',
  );
  expect(faults).toHaveLength(2);
});

test('a request begins with its kind in a database that has forgotten it, and is found among those that are open', async () => {
  const { engine, run } = open();
  const store = createStore(engine, { nextId: () => 'id', now: () => 7, report: () => {} });
  await store.createKey(payingKey, 'hash', 1_000);
  await store.open({ ...openedRecord, requestId: requestIdFor('a') });
  await run('DROP TRIGGER kind_is_never_removed');
  await run('DELETE FROM record_kinds');
  expect(await store.open({ ...openedRecord, requestId: requestIdFor('b') })).toMatchObject({
    granted: true,
  });
  const page = await store.listRecords({}, 5, null);
  expect(page?.records.map((record) => record.requestId)).toEqual(
    ['b', 'a'].map((name) => requestIdFor(name)),
  );
});

test('a kind is neither changed nor removed: it is part of every record that has it', async () => {
  const { engine, run } = open();
  await createKindNumbers(engine).ask(kindOf('m'));
  await expect(run("UPDATE record_kinds SET model = 'n'")).rejects.toThrow('never changed');
  await expect(run('DELETE FROM record_kinds')).rejects.toThrow('never removed');
});

test('a settlement whose kind is forgotten right after it was named is made all the same', async () => {
  const { engine, run } = open();
  let named = 0;
  const forgetful: typeof engine = {
    ...engine,
    async call(unit, values) {
      const row = await engine.call(unit, values);
      if (unit.name === 'number_kind' && ++named === 1) await run('DELETE FROM record_kinds');
      return row;
    },
  };
  const store = createStore(forgetful, { nextId: () => 'id', now: () => 7, report: () => {} });
  await store.createKey(payingKey, 'hash', 1_000);
  await run('DROP TRIGGER kind_is_never_removed');
  await store.settle(settledRecord);
  expect(await store.findRecord(settledRecord.requestId, null)).toMatchObject({ chargeNanos: 1 });
});

import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { pickValues, takeValues, toPlain } from '../../src/storage/engine.ts';
import type { Taken } from '../../src/storage/engine.ts';
import { fixedUnits } from '../../src/storage/fixed-units.ts';
import { migrate } from '../../src/storage/sqlite/schema.ts';
import { UnitRunner } from '../../src/storage/sqlite/run-unit.ts';
import type { Unit } from '../../src/storage/sqlite/thread-messages.ts';
import { fixedUnitValues } from '../support/fixed-units.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';

test('a statement is written with plain placeholders, each with the index of its value: those that are decided come last', () => {
  const unit = {
    takes: { key: 'text', sum: 'bigint', at: 'bigint' },
    decided: { key: 'text', held: 'bigint' },
  } as const;
  const plain = toPlain('SELECT :sum, @held + :at, :sum, @key', unit);
  expect(plain).toEqual({ sql: 'SELECT ?, ? + ?, ?, ?', indexes: [1, 4, 2, 1, 3] });
  expect(() => toPlain('SELECT :held', unit)).toThrow('nothing gives held');
  expect(() => toPlain('SELECT @sum', unit)).toThrow('nothing gives sum');
  expect(pickValues({ sql: '', indexes: [1, 0, 1] }, ['a', null])).toEqual([null, 'a', null]);
});

test('values are passed in the order of their names, and none may be missing', () => {
  type Row = Partial<Record<'key' | 'sum' | 'more', number | null>>;
  const taken: Taken<Row> = [
    ['key', 'text', ({ key }) => key],
    ['sum', 'bigint', ({ sum }) => sum],
  ];
  expect(takeValues(taken, { sum: 0, key: null, more: 1 })).toEqual([null, 0]);
  expect(() => takeValues(taken, { sum: 1 })).toThrow('the value key is missing');
});

test('every statement of a fixed unit is prepared with plain placeholders alone', () => {
  const database = new DatabaseSync(':memory:');
  onTestFinished(() => database.close());
  database.function('now_ms', () => 7);
  migrate(database);
  const prepared: string[] = [];
  const prepare = database.prepare.bind(database);
  database.prepare = (sql, options) => {
    prepared.push(sql);
    return prepare(sql, options);
  };
  const units = Object.values(fixedUnits);
  const results = new UnitRunner(database, true).commit(
    units.map(({ name }) => ({ kind: 'fixed', name, values: fixedUnitValues[name] })),
  );
  expect(results.map(({ kind }) => kind)).toEqual(units.map(() => 'done'));
  const steps = units
    .flatMap(({ preparations, decisions, changes }) => preparations.concat(decisions, changes))
    .filter((sql) => /[:@]\w/.test(sql));
  expect(prepared.filter((sql) => sql.includes('?'))).toHaveLength(steps.length);
  expect(prepared.filter((sql) => /[?:@]\w/.test(sql))).toEqual([]);
});

test('only commits of nothing but beginnings do not wait for the disk', () => {
  const path = join(makeTemporaryFolder(), 'textgate.db');
  const database = new DatabaseSync(path);
  onTestFinished(() => database.close());
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
  migrate(database);
  const runner = new UnitRunner(database, true);
  const [open, settle] = (['open_record', 'settle_record'] as const).map((name): Unit => ({
    kind: 'fixed',
    name,
    values: fixedUnitValues[name],
  })) as [Unit, Unit];
  const other: Unit = { kind: 'statements', statements: [{ sql: 'SELECT 1', values: [] }] };
  const [normal, full] = [1, 2];
  const found = [
    [open],
    [open, open],
    [settle],
    [settle],
    [open],
    [open, settle],
    [other],
    [open],
    [other, open],
  ].map((units) => {
    runner.commit(units);
    return database.prepare('PRAGMA synchronous').get()?.['synchronous'];
  });
  expect(found).toEqual([normal, normal, full, full, normal, full, full, normal, full]);
});

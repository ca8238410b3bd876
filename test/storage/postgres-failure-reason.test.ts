import { DatabaseError } from 'pg';
import { expect, test } from 'vitest';
import { StorageError } from '../../src/domain/storage-refusal.ts';
import { readTransaction } from '../../src/storage/postgres/connection/queries.ts';
import { storageErrorOf } from '../../src/storage/postgres/connection/failures.ts';

/** An error as pg makes it of the database's answer. */
function answered(code: string): Error {
  return Object.assign(new DatabaseError('it failed', 9, 'error'), { code });
}

test.each(['22001', '22P02', '23502', '23505', '23514', '42601', '54000'])(
  'an error of PostgreSQL with the code %s is for good: the same values fail again',
  (code) => {
    expect(storageErrorOf(answered(code))).toMatchObject({ reason: 'rejected', isPermanent: true, code });
  },
);

test.each([
  ['08006', 'unavailable'],
  ['08P01', 'unavailable'],
  ['0A000', 'read_only'],
  ['25006', 'read_only'],
  ['25P02', 'unknown'],
  ['25P03', 'slow'],
  ['26000', 'unavailable'],
  ['28P01', 'unavailable'],
  ['3D000', 'unavailable'],
  ['40001', 'locked'],
  ['40P01', 'locked'],
  ['42501', 'unknown'],
  ['42P01', 'unknown'],
  ['42P05', 'unavailable'],
  ['53100', 'full'],
  ['53300', 'unavailable'],
  ['55P03', 'locked'],
  ['57014', 'slow'],
  ['57P01', 'unavailable'],
  ['58030', 'io'],
  ['XX000', 'unknown'],
])('an error of PostgreSQL with the code %s passes, and its reason is %s', (code, reason) => {
  expect(storageErrorOf(answered(code))).toMatchObject({ reason, isPermanent: false, code });
});

test('an error of a connection passes, whatever its code looks like', () => {
  // As long as a code of PostgreSQL.
  const broken = Object.assign(new Error('write EPIPE'), { code: 'EPIPE' });
  expect(storageErrorOf(broken)).toMatchObject({ message: 'write EPIPE', reason: 'unavailable' });
  const nowhere = Object.assign(new AggregateError([], ''), { code: 'ECONNREFUSED' });
  expect(storageErrorOf(nowhere)).toMatchObject({ message: 'ECONNREFUSED', reason: 'unavailable' });
});

test('a transaction that ends in a rollback is no success', () => {
  const answer = (command: string) => ({ command, rows: [], rowCount: 0, oid: 0, fields: [] });
  const answers = (end: string) => [answer('BEGIN'), answer('SELECT'), answer('INSERT'), answer(end)];
  expect(readTransaction(answers('COMMIT'))).toEqual([[]]);
  expect(() => readTransaction(answers('ROLLBACK'))).toThrow(StorageError);
});

import { openingReference } from '../../domain/money/account.ts';
import type { Accounts } from '../../domain/ports/accounts.ts';
import type { NextId } from '../../domain/ports/clock.ts';
import type { DeclarationStore, KeyLookUp, KeyStore } from '../../domain/ports/key-store.ts';
import {
  bookCredit,
  countLowBalances,
  readAccount,
  readBookedCredit,
  selectAccounts,
} from '../ledger/account-statements.ts';
import { countWarnedBudgets, readPeriod, selectBudgets } from '../ledger/budget-statements.ts';
import { readDeclarations, selectDeclarations } from './declaration-reads.ts';
import { readMovedSecrets, storeDeclarations } from './declaration-statements.ts';
import type { Engine } from '../engine.ts';
import {
  insertFirstKey,
  insertKey,
  readKey,
  readLimits,
  revokeKey,
  rotateKey,
  selectKeyByHash,
  selectKeyById,
  selectLimits,
  selectNames,
  updateKey,
} from './key-statements.ts';
import { selectKeys } from './key-pages.ts';
import { lookUpRows, readCount, readRows } from '../read-rows.ts';

/** Stores keys over any engine. Reads wait for no unit. */
export function createKeyStore(engine: Engine, nextId: NextId, nowMs: () => number): KeyStore & KeyLookUp {
  return {
    async createKey(key, hash, nanos) {
      const opening = { keyId: key.id, reference: openingReference };
      const credit = nanos === null ? [] : bookCredit({ ...opening, nanos }, nextId(), key.createdAtMs);
      await engine.run([...insertKey(key, hash), ...credit]);
    },
    async createFirstKey(key, hash) {
      const [row] = (await engine.run(insertFirstKey(key, hash))).at(-1) ?? [];
      return row?.['count'] === 1;
    },
    async findKeyByHash(hash) {
      const [row] = await lookUpRows(engine, selectKeyByHash(hash, nowMs()));
      return row === undefined ? null : readKey(row);
    },
    async findKeyById(id) {
      const [row] = await lookUpRows(engine, selectKeyById(id));
      return row === undefined ? null : readKey(row);
    },
    async updateKey(id, changes) {
      const [row] = (await engine.run(updateKey(id, changes))).at(-1) ?? [];
      return row === undefined ? null : readKey(row);
    },
    async revokeKey(id, revokedAtMs) {
      await engine.run([revokeKey(id, revokedAtMs)]);
    },
    async rotateKey(id, hash, oldValidUntilMs) {
      await engine.run(rotateKey(id, hash, oldValidUntilMs));
    },
    async listKeys(filter, limit, before) {
      const [cursor] = before === null ? [] : await readRows(engine, selectKeyById(before));
      if (before !== null && cursor === undefined) return null;
      const behind = cursor === undefined ? null : readKey(cursor);
      const found = await readRows(engine, selectKeys(filter, limit + 1, behind, nowMs()));
      const keys = found.slice(0, limit).map(readKey);
      return { keys, next: found.length > limit ? (keys.at(-1)?.id ?? null) : null };
    },
    async limitsOf(keyIds) {
      const rows = await readRows(engine, selectLimits(keyIds));
      return new Map(rows.map((row) => [String(row['id']), readLimits(row)]));
    },
    async namesOf(keyIds) {
      const rows = await readRows(engine, selectNames(keyIds));
      return new Map(rows.map((row) => [String(row['id']), String(row['name'])]));
    },
    countKeys: () => readCount(engine, { sql: 'SELECT count(*) AS count FROM api_keys', values: [] }),
  };
}

/** Stores the declared keys over any engine. */
export function createDeclarationStore(
  engine: Engine,
  nextId: NextId,
  nowMs: () => number,
): DeclarationStore {
  return {
    async listDeclarations(declared) {
      return readDeclarations(await engine.read(selectDeclarations(declared, nowMs())));
    },
    async storeDeclarations(changes, changedAtMs) {
      return readMovedSecrets(await engine.run(storeDeclarations(changes, nextId(), changedAtMs)));
    },
  };
}

/** Stores the money of keys over any engine. */
export function createAccounts(engine: Engine, nextId: NextId, nowMs: () => number): Accounts {
  return {
    async credit(credit) {
      const posting = nextId();
      const results = await engine.run(bookCredit(credit, posting, nowMs()));
      return readBookedCredit(results, credit.nanos, posting);
    },
    async accounts(keyIds) {
      const found = await lookUpRows(engine, selectAccounts(keyIds));
      return new Map(found.map((row) => [String(row['key_id']), readAccount(row)]));
    },
    async budgetPeriods(ids) {
      const found = await lookUpRows(engine, selectBudgets(ids));
      return new Map(found.map((row) => [String(row['id']), readPeriod(row)]));
    },
    countLowBalances: (belowNanos, atMs) => readCount(engine, countLowBalances(belowNanos, atMs)),
    countWarnedBudgets: (atMs) => readCount(engine, countWarnedBudgets(atMs)),
  };
}

import { randomBytes, randomUUID } from 'node:crypto';
import { describe, expect, onTestFinished, test } from 'vitest';
import { safeChanges } from '../../src/domain/audit/audit-line.ts';
import { noPause } from '../../src/domain/pause.ts';
import { declareKeys } from '../../src/operations/declare-keys.ts';
import { verifyLedger } from '../../src/operations/verify-ledger.ts';
import { hashKey } from '../../src/shared/digest.ts';
import { createAuditTrail } from '../../src/storage/audit/audit-lines.ts';
import { createLedgerAudit } from '../../src/storage/ledger/ledger-audit.ts';
import { createPostgresEngine } from '../../src/storage/postgres/engine.ts';
import { createStore } from '../../src/storage/store.ts';
import { declared } from '../conformance/declarations.ts';
import { ada, entries, startMs } from '../support/audit-scene.ts';
import { statementsOver } from '../support/statement-tools.ts';
import { payingKey } from '../support/stored-rows.ts';
import { systemClock } from '../../src/composition/clock.ts';
import { openPostgres, postgresAbsence } from '../support/test-postgres.ts';

const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;
const now = (): number => startMs;

describe.skipIf(postgresAbsence !== null)(`the audit of two nodes${absent}`, () => {
  test('has the lines of both without a gap, each with what was before it, and one chain', async () => {
    const first = await openPostgres();
    onTestFinished(() => first.close());
    const second = createPostgresEngine({ url: first.database.url, clock: systemClock });
    await second.ready;
    onTestFinished(() => second.close());
    const nodes = [first, second].map((engine) => ({
      store: createStore(engine, { nextId: () => randomUUID(), now, report: () => {} }),
      trail: createAuditTrail(engine, now),
      statements: statementsOver(engine, now),
    }));
    const [one] = nodes;
    await one?.store.createKey({ ...payingKey, limits: { concurrency: 1 } }, 'hash', 9, ada);
    const keys = ['bob', 'eve'].map((name) => declared(name, hashKey(name)));
    const tools = { randomBytes, hash: hashKey, now };
    const compare = (before: string | null) => {
      const changes = before === null ? [] : [{ field: 'a', before, after: 'b' }];
      return { after: before === null ? 'a' : 'b', changes: safeChanges(changes) };
    };
    const config = { ...ada, way: 'config' } as const;
    await one?.trail.noteConfig(config, compare);
    const begun: Promise<unknown>[] = [];
    for (const [node, { store, trail, statements }] of nodes.entries()) {
      for (let at = 2; at < 12; at++)
        begun.push(store.updateKey(payingKey.id, { concurrency: node * 10 + at }, ada));
      for (let at = 0; at < 5; at++) begun.push(trail.add(entries(3)));
      begun.push(declareKeys(keys, { store, ...tools }), trail.noteConfig(config, compare));
      begun.push(statements.makeRoot());
    }
    await Promise.all(begun);
    const lines = (await one?.trail.list({}, 1_000, null))?.lines.toReversed() ?? [];
    expect(lines.map(({ number }) => number)).toEqual(lines.map((_, at) => at + 1));
    const of = (action: string) => lines.filter((line) => line.action === action);
    expect([of('key.create').length, of('config.load').length, of('request.cancel').length]).toEqual([
      3, 1, 30,
    ]);
    const limits = of('key.change').flatMap(({ changes }) => changes);
    expect(limits).toHaveLength(20);
    expect(limits.map(({ before }) => before)).toEqual(
      ['1', ...limits.map(({ after }) => after)].slice(0, -1),
    );
    await one?.statements.makeRoot();
    expect((await verifyLedger(createLedgerAudit(second), noPause)).faults).toEqual([]);
  });
});

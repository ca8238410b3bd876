import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { SettledRecord } from '../../src/domain/money/consumption.ts';
import { StorageError } from '../../src/domain/storage-refusal.ts';
import { maxNanos } from '../../src/shared/money.ts';
import type { Engine, Row } from '../../src/storage/engine.ts';
import { createStore } from '../../src/storage/store.ts';
import type { Store } from '../../src/storage/store.ts';
import { propertyRun } from '../support/property-run.ts';
import { beginningOf } from '../support/stored-rows.ts';
import { openTestEngine } from '../support/test-engine.ts';
import { openPostgres, postgresAbsence } from '../support/test-postgres.ts';
import { say } from './engine.ts';
import { idOf, key, opened, settled, startMs } from './store.ts';

/** A step of one process. Its key is that of the request, which has the same one in every step. */
type Step =
  | { readonly kind: 'begin'; readonly request: number; readonly hold: number; readonly least: number }
  | {
      readonly kind: 'settle';
      readonly request: number;
      readonly charge: number;
      readonly outcome: SettledRecord['outcome'];
      readonly hasUpstream: boolean;
    }
  | { readonly kind: 'close as lost'; readonly requests: readonly number[] }
  | { readonly kind: 'credit'; readonly account: number; readonly nanos: number };

/** Balances that the accounts begin with; the last key has no account. */
const balances = [null, 0, 100, maxNanos] as const;
const accounts = balances.length + 1;
const keyIdOf = (run: string, request: number): string => `${run} key ${request % accounts}`;

const request = fc.nat(9);
const charge = fc.oneof(fc.nat(40), fc.constantFrom(0, 2 ** 40, maxNanos - 1, maxNanos));
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('begin'),
      request,
      hold: fc.oneof(fc.nat(60), fc.constant(2 ** 40)),
      least: fc.integer({ min: 1, max: 30 }),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('settle'),
      request,
      charge,
      outcome: fc.constantFrom('completed', 'drained'),
      hasUpstream: fc.boolean(),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('close as lost'),
      requests: fc.array(request, { maxLength: 4 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('credit'),
      account: fc.nat(accounts - 1),
      nanos: fc.integer({ min: 1, max: 50 }),
    }),
  },
);

const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;

describe.skipIf(postgresAbsence !== null)(`settlements on both engines${absent}`, () => {
  let engines: readonly Engine[];
  let runs = 0;
  beforeAll(async () => {
    engines = [openTestEngine(':memory:'), await openPostgres()];
    await Promise.all(engines.map(({ ready }) => ready));
  });
  afterAll(() => Promise.all(engines.map((engine) => engine.close())));

  test('answer the same and leave the same rows, whatever was begun, settled and closed before', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30, size: 'max' }), async (steps) => {
        const run = `run-${++runs}`;
        const [found, expected] = await Promise.all(engines.map((engine) => takeSteps(engine, run, steps)));
        expect(found).toEqual(expected);
      }),
      propertyRun(100),
    );
  });
});

/** Takes steps on an engine; returns what each of them answered and reported, and the rows of all requests and accounts. */
async function takeSteps(engine: Engine, run: string, steps: readonly Step[]) {
  const answers: unknown[] = [];
  let lastId = 0;
  const store = createStore(engine, {
    nextId: () => `${run} id ${++lastId}`,
    now: () => startMs,
    report: (message, what) => void answers.push([message, String(what)]),
  });
  for (const [account, balance] of balances.entries()) {
    const id = keyIdOf(run, account);
    await store.createKey({ ...key, id, name: id, hasBalance: balance !== null }, id, balance);
  }
  for (const action of steps) answers.push(await answerOf(() => take(store, run, action)));
  return { answers, rows: await readRows(engine, run) };
}

/** Takes one step. */
async function take(store: Store, run: string, action: Step): Promise<unknown> {
  switch (action.kind) {
    case 'begin': {
      const record = opened(`${run} ${action.request}`, action.hold, action.least);
      return store.open({ ...record, keyId: keyIdOf(run, action.request) });
    }
    case 'settle': {
      const { request: number, charge: nanos, outcome, hasUpstream } = action;
      const name = `${run} ${number}`;
      const begun = { ...beginningOf(opened(name, 7)), keyId: keyIdOf(run, number) };
      return store.settle({
        ...settled(name, nanos),
        outcome,
        upstream: hasUpstream ? 'another' : null,
        begun,
      });
    }
    case 'close as lost':
      return store.closeAsLost(action.requests.map((number) => idOf(`${run} ${number}`)));
    case 'credit': {
      const { account, nanos } = action;
      return store.credit({ keyId: keyIdOf(run, account), nanos, reference: `${account} ${nanos}` });
    }
  }
}

/** The tables that these steps change, with the order in which their rows are compared. */
const tables = {
  accounts: 'key_id',
  open_requests: 'request_id',
  records: 'request_id',
  ledger: 'key_id, number',
};

/** All rows of a run, without what is null in them: SQLite still has a column that nothing writes any more. */
async function readRows(engine: Engine, run: string): Promise<readonly (readonly Row[])[]> {
  const found = await engine.read(
    Object.entries(tables).map(([table, order]) =>
      say(`SELECT * FROM ${table} WHERE key_id LIKE ? ORDER BY ${order}`, `${run} key %`),
    ),
  );
  return found.map((rows) => rows.map(comparable));
}

/** A row without what is null in it, and with bytes as PostgreSQL writes them. */
function comparable(row: Row): Row {
  const values = Object.entries(row).filter(([, value]) => value !== null);
  return Object.fromEntries(
    values.map(([name, value]: [string, unknown]) => [
      name,
      value instanceof Uint8Array ? `\\x${Buffer.from(value).toString('hex')}` : (value as Row[string]),
    ]),
  );
}

/** What a step answered, or its error: engines have words of their own for a request that was begun already. */
async function answerOf(act: () => Promise<unknown>): Promise<unknown> {
  return act().catch((error: unknown) => (error instanceof StorageError ? error.reason : String(error)));
}

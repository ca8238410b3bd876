import { describe, expect, onTestFinished, test } from 'vitest';
import { StorageError } from '../../src/domain/storage-refusal.ts';
import type { Engine, Row, Statement } from '../../src/storage/engine.ts';

/** What the suite needs of an implementation. */
export interface EngineSubject {
  /** Opens a database of its own for the test, with the product's schema. */
  readonly open: () => Promise<Engine>;
  /** By its name, a fault that passes: opens a database with the table of `createItems`, and has every unit fail. */
  readonly passingFaults: Readonly<Record<string, () => Promise<Engine>>>;
}

/** A statement with its values. */
export function say(sql: string, ...values: Statement['values']): Statement {
  return { sql, values };
}

/** The table that the suite works on. */
export const createItems = say(
  'CREATE TABLE items (id BIGINT PRIMARY KEY, amount BIGINT NOT NULL CHECK (amount >= 0), name TEXT)',
);

/** Adds an item. */
function insertItem(id: number, amount: number | null = 1, name: string | null = null): Statement {
  return say('INSERT INTO items (id, amount, name) VALUES (?, ?, ?)', id, amount, name);
}

const countItems = say('SELECT count(*) AS count FROM items');

/** Keeps a connection busy for a while: look-ups have short limits. */
const slow = (kind: 'read' | 'lookUp'): Statement =>
  say(
    'WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) SELECT max(i) AS max FROM n',
    kind === 'read' ? 1_500_000 : 400_000,
  );

/** Reads one row beside the units. */
async function readOne(
  engine: Engine,
  statement: Statement,
  kind: 'read' | 'lookUp' = 'read',
): Promise<Row | undefined> {
  const [[row] = []] = await engine[kind]([statement]);
  return row;
}

/** What every engine must do, whatever database is behind it. */
export function describeEngine(name: string, subject: EngineSubject): void {
  const open = async (): Promise<Engine> => {
    const engine = await subject.open();
    onTestFinished(async () => {
      // Leaves the database as it was found, which may be the next test's.
      await engine.run([say('DROP TABLE items')]);
      await engine.close();
    });
    await engine.run([createItems]);
    return engine;
  };
  describe(`${name}: units`, () => {
    describeUnits(open);
  });
  describe.each(['read', 'lookUp'] as const)(`${name}: %s`, (kind) => {
    describeReads(open, kind);
  });
  describe(`${name}: values`, () => {
    describeValues(open);
  });
  describe(`${name}: faults`, () => {
    describeFaults(open, subject.passingFaults);
  });

  test(`${name}: commits what was handed in before the close, and refuses what comes later`, async () => {
    const engine = await subject.open();
    const early = engine.run([createItems, insertItem(1)]);
    await Promise.all([early, engine.close()]);
    await expect(engine.run([insertItem(2)])).rejects.toThrow(StorageError);
    await expect(engine.read([countItems])).rejects.toThrow(StorageError);
    await expect(engine.lookUp([countItems])).rejects.toThrow(StorageError);
  });
}

function describeUnits(open: () => Promise<Engine>): void {
  test('resolves a unit with the rows of each statement, in their order', async () => {
    const engine = await open();
    const results = await engine.run([
      insertItem(1, 5),
      say('UPDATE items SET amount = amount + 2 WHERE id = ? RETURNING amount', 1),
      say('SELECT id, amount FROM items'),
    ]);
    expect(results).toEqual([[], [{ amount: 7 }], [{ id: 1, amount: 7 }]]);
  });

  test('runs a unit whole or not at all, and fails none of those that were handed in with it', async () => {
    const engine = await open();
    const settled = await Promise.allSettled([
      engine.run([insertItem(1)]),
      engine.run([insertItem(2), insertItem(1)]),
      engine.run([say('INSERT INTO nowhere VALUES (1)')]),
      engine.run([insertItem(3)]),
    ]);
    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected', 'fulfilled']);
    const [rows] = await engine.read([say('SELECT id FROM items ORDER BY id')]);
    expect(rows).toEqual([{ id: 1 }, { id: 3 }]);
  });

  test('runs units one after the other: none reads a sum that another one is about to change', async () => {
    const engine = await open();
    await engine.run([insertItem(1, 0)]);
    const add = say('UPDATE items SET amount = (SELECT amount FROM items WHERE id = 1) + 1 WHERE id = 1');
    await Promise.all(Array.from({ length: 500 }, () => engine.run([add])));
    expect(await readOne(engine, say('SELECT amount FROM items'))).toEqual({ amount: 500 });
  });

  test('decides once where many units insert the same key, and fails none of them on a conflict', async () => {
    const engine = await open();
    const insert = say(
      'INSERT INTO items (id, amount) SELECT CAST(? AS BIGINT), CAST(? AS BIGINT) WHERE 1 = 1 ON CONFLICT (id) DO NOTHING RETURNING id',
      7,
      1,
    );
    const results = await Promise.all(Array.from({ length: 50 }, () => engine.run([insert])));
    expect(results.filter(([rows = []]) => rows.length > 0)).toHaveLength(1);
  });
}

function describeReads(open: () => Promise<Engine>, kind: 'read' | 'lookUp'): void {
  test('reads everything that was committed before the call', async () => {
    const engine = await open();
    for (let number = 1; number <= 300; number++) {
      await engine.run([insertItem(number)]);
      expect(await readOne(engine, countItems, kind)).toEqual({ count: number });
    }
  });

  test('delays no unit by a read, however long that takes', async () => {
    const engine = await open();
    const order: string[] = [];
    const read = engine[kind]([slow(kind)]).then(() => order.push('read'));
    for (let number = 0; number < 10; number++) await engine.run([insertItem(number)]);
    order.push('ten units');
    await read;
    expect(order).toEqual(['ten units', 'read']);
  });

  test('reads all statements of one call as of one moment, whatever is committed between them', async () => {
    const engine = await open();
    const state = { isReading: true };
    const read = engine[kind]([countItems, slow(kind), countItems]).finally(() => (state.isReading = false));
    for (let number = 0; state.isReading && number < 200; number++) await engine.run([insertItem(number)]);
    const [before, , after] = await read;
    expect(after).toEqual(before);
  });

  test('changes nothing by a read', async () => {
    const engine = await open();
    await expect(engine[kind]([insertItem(1)])).rejects.toThrow(StorageError);
    expect(await readOne(engine, countItems, kind)).toEqual({ count: 0 });
  });
}

function describeValues(open: () => Promise<Engine>): void {
  test.each([0, 1, 2 ** 31, 2 ** 32 + 1, Number.MAX_SAFE_INTEGER])(
    'keeps the integer %d exact, and returns it as a number',
    async (amount) => {
      const engine = await open();
      await engine.run([insertItem(1, amount)]);
      const read = say('SELECT amount, -amount AS less, sum(amount) AS total FROM items GROUP BY amount');
      expect(await readOne(engine, read)).toEqual({ amount, less: 0 - amount, total: amount });
    },
  );

  test('returns an integer beyond 2^53 as the nearest number, so that its row can still be read', async () => {
    const engine = await open();
    await engine.run([say('INSERT INTO items (id, amount) VALUES (1, 9007199254740993)')]);
    expect(await readOne(engine, say('SELECT amount FROM items'))).toEqual({ amount: 2 ** 53 });
  });

  test('returns a condition as 1 or 0', async () => {
    const engine = await open();
    await engine.run([insertItem(1, 1, 'a')]);
    const read = say('SELECT name IS NOT NULL AS named, amount > 5 AS much FROM items');
    expect(await readOne(engine, read)).toEqual({ named: 1, much: 0 });
  });

  test.each([null, '', 'plain', 'Ünïcödé 😀 \n "quoted"', '0', '123'])(
    'returns the text %j unchanged',
    async (text) => {
      const engine = await open();
      await engine.run([insertItem(1, 1, text)]);
      expect(await readOne(engine, say('SELECT name FROM items'))).toEqual({ name: text });
    },
  );

  test('returns null for a sum of no rows', async () => {
    const engine = await open();
    expect(await readOne(engine, say('SELECT sum(amount) AS total FROM items'))).toEqual({ total: null });
  });
}

function describeFaults(open: () => Promise<Engine>, passing: EngineSubject['passingFaults']): void {
  test.each([
    ['violates a check', insertItem(2, -1)],
    ['lacks a value', insertItem(2, null)],
    ['repeats a key', insertItem(1)],
    [
      'has a value of no type of SQL',
      say('INSERT INTO items (id, amount) VALUES (2, ?)', undefined as unknown as null),
    ],
  ])('rejects for good a unit that %s', async (_name, statement) => {
    const engine = await open();
    await engine.run([insertItem(1)]);
    const failed = engine.run([statement]);
    await expect(failed).rejects.toBeInstanceOf(StorageError);
    await expect(failed).rejects.toMatchObject({ reason: 'rejected', isPermanent: true });
    expect(await readOne(engine, countItems)).toEqual({ count: 1 });
  });

  test.each(Object.entries(passing))(
    'rejects for now a unit that meets a database that is %s',
    async (_name, openFaulty) => {
      const engine = await openFaulty();
      onTestFinished(() => engine.close().catch(() => {}));
      const failed = engine.run([insertItem(1, 1, 'x'.repeat(1_000_000))]);
      await expect(failed).rejects.toBeInstanceOf(StorageError);
      await expect(failed).rejects.toMatchObject({ isPermanent: false });
    },
    20_000,
  );
}

import { randomUUID } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/composition/clock.ts';
import {
  composeKeyDirectory,
  createSharedServices,
  joinNodes,
} from '../../src/composition/storage/shared-services.ts';
import { mintKey } from '../../src/domain/keys/api-key.ts';
import type { OpenedRecord } from '../../src/domain/money/consumption.ts';
import type { RunningRequest } from '../../src/domain/ports/running-requests.ts';
import { InFlight } from '../../src/pipeline/in-flight.ts';
import { hashKey } from '../../src/shared/digest.ts';
import { createPostgresEngine } from '../../src/storage/postgres/engine.ts';
import { createStore } from '../../src/storage/store.ts';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { usePostgresBench } from '../support/postgres-bench.ts';
import { beginningOf, openedRecord, payingKey, settledRecord } from '../support/stored-rows.ts';
import { postgresAbsence } from '../support/test-postgres.ts';

const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;
const bench = usePostgresBench();

/** When the requests of these tests arrived, and their ids. */
const arrivedMs = 1_700_000_000_000;
const requestIdAt = (atMs: number): string => `req_${atMs.toString(16).padStart(12, '0')}${'0'.repeat(20)}`;

const say = (sql: string, ...values: readonly (string | number | null)[]) => ({ sql, values });

/** A node with a lease of its own, as a gateway has it, on a clock that the test advances. */
async function startNode(url = bench.url) {
  const engine = createPostgresEngine({ url, clock: systemClock });
  onTestFinished(() => engine.close());
  await engine.ready;
  const clock = createFakeClock();
  const store = createStore(engine, { nextId: randomUUID, now: () => 7, report: () => {} });
  const shared = createSharedServices(engine, () => store.owner());
  await store.renewLease();
  const faults: string[] = [];
  const onFault = (message: string): void => void faults.push(message);
  const directory = composeKeyDirectory(store, shared, clock, { onFault, onShed: () => {} });
  const inFlight = new InFlight();
  let polls: readonly Promise<unknown>[] = [];
  const changes = {
    ...shared.changes,
    find() {
      const poll = shared.changes.find();
      polls = [...polls, poll];
      return poll;
    },
  };
  const services = { shared: { ...shared, changes }, keyDirectory: directory, engine };
  const nodes = joinNodes(services, inFlight, clock, { fault: onFault });
  onTestFinished(() => nodes.stop());
  return {
    engine,
    owner: store.owner(),
    clock,
    store,
    shared,
    directory,
    faults,
    running: nodes.running,
    /** Advances the time to the next read of the changes, and waits for its answer. */
    async poll(): Promise<void> {
      const { length } = polls;
      await eventually('the changes are read', () => {
        if (polls.length === length) clock.advance(100);
        return polls.length > length;
      });
      await Promise.allSettled(polls);
      // What follows the answer is done in the same turn.
      await setImmediate();
    },
    /** Has a request run here; returns why it was interrupted. */
    begin(requestId: string, view: Partial<RunningRequest> = {}): string[] {
      const interruptions: string[] = [];
      const running: RunningRequest = { ...ownView, requestId, ...view };
      inFlight.add({
        requestId,
        view: () => running,
        interrupt: (reason) => void interruptions.push(reason),
      });
      return interruptions;
    },
    endLease: () => store.endLease(),
  };
}

const ownView: RunningRequest = {
  requestId: '',
  protocol: 'chat',
  createdAtMs: arrivedMs,
  keyId: 'key_a',
  groupId: null,
  hasSlot: true,
  permitWait: null,
  mode: 'sync',
  model: 'm',
  upstream: 'u',
  firstTextMs: 12,
  listening: null,
  joined: null,
  node: null,
};

type Node = Awaited<ReturnType<typeof startNode>>;

/** Writes a request of a node as its limiter and its records do. */
async function write(
  node: Node,
  table: 'slots' | 'waiting_requests' | 'open_requests',
  requestId: string,
  begun: Partial<OpenedRecord> = {},
) {
  const keyId = 'key_a';
  if (table === 'open_requests') {
    await node.engine.run([say('INSERT INTO accounts (key_id) VALUES (?) ON CONFLICT DO NOTHING', keyId)]);
    const record = {
      ...openedRecord,
      keyId,
      protocol: 'responses',
      mode: 'stream',
      ...begun,
      requestId,
    } as const;
    await node.store.open(record);
    return;
  }
  const more = {
    slots: {},
    waiting_requests: { ticket: Math.trunc(Math.random() * 1e9), concurrency: 1, requests_per_minute: 1 },
  }[table];
  const row = { request_id: requestId, key_id: keyId, owner: node.owner, ...more };
  const places = Object.keys(row).map(() => '?');
  await node.engine.run([
    say(`INSERT INTO ${table} (${Object.keys(row).join()}) VALUES (${places.join()})`, ...Object.values(row)),
  ]);
}

describe.skipIf(postgresAbsence !== null)(`changes of keys on PostgreSQL${absent}`, () => {
  test('are counted by every statement that changes a key, a secret, or whether a key has a balance', async () => {
    const { store, shared } = await startNode();
    const count = async (): Promise<number> => (await shared.changes.find()).keyChanges;
    const changed = async (work: () => Promise<unknown>): Promise<boolean> => {
      const before = await count();
      await work();
      return (await count()) !== before;
    };
    const key = { ...payingKey, id: 'key_counted', hasBalance: false };
    const declared = {
      name: 'd',
      hash: 'h',
      limits: {},
      models: null,
      allowFrom: null,
      lowBalanceNanos: null,
      tags: [],
      expiresAt: null,
      budget: null,
      group: null,
      weight: 1,
      joinRetriesMs: null,
      compatibility: {},
    };
    const credit = { keyId: key.id, nanos: 10 };
    const opened = { ...openedRecord, keyId: key.id };
    const begun = beginningOf(opened);
    expect([
      await changed(() => store.createKey(key, 'hash_1', null)),
      await changed(() => store.updateKey(key.id, { concurrency: 3 })),
      await changed(() => store.revokeKey(key.id, 5)),
      await changed(() => store.rotateKey(key.id, 'hash_2', 9)),
      await changed(() =>
        store.storeDeclarations({ changed: [{ id: 'key_d', spareId: 'key_e', declared }], removed: [] }, 1),
      ),
      await changed(() => store.storeDeclarations({ changed: [], removed: ['d'] }, 1)),
      await changed(() => store.credit({ ...credit, reference: 'first' })),
    ]).toEqual([true, true, true, true, true, true, true]);
    expect([
      await changed(() => store.credit({ ...credit, reference: 'second' })),
      await changed(() => store.open(opened)),
      await changed(() => store.settle({ ...settledRecord, begun })),
      await changed(() => store.findKeyById(key.id)),
    ]).toEqual([false, false, false, false]);
  });

  test('are counted when they are made by hand, and for each table', async () => {
    const { shared } = await startNode();
    await bench.sql(`INSERT INTO api_keys (id, hash, name, created_at) VALUES ('key_hand', 'hand', 'h', 1)`);
    for (const statement of [
      `INSERT INTO old_secrets VALUES ('old', 'key_hand', 5)`,
      `UPDATE old_secrets SET valid_until = 6 WHERE hash = 'old'`,
      `DELETE FROM old_secrets WHERE hash = 'old'`,
      `UPDATE api_keys SET revoked_at = 1 WHERE id = 'key_hand'`,
      `DELETE FROM api_keys WHERE id = 'key_hand'`,
    ]) {
      const before = (await shared.changes.find()).keyChanges;
      await bench.sql(statement);
      expect([statement, (await shared.changes.find()).keyChanges]).toEqual([statement, before + 1]);
    }
  });

  test('count on every node with its next read, a second later', async () => {
    const [one, other] = [await startNode(), await startNode()];
    const { id, secret } = mintKey(Buffer.alloc(44, '2'));
    const key = { ...payingKey, id, hasBalance: false };
    await one.store.createKey(key, hashKey(secret), null);
    await other.poll();
    expect(await other.directory.find(secret)).toMatchObject({ id, hasBalance: false, limits: {} });
    await one.store.credit({ keyId: id, nanos: 10, reference: 'first' });
    await one.store.updateKey(id, { concurrency: 3 });
    // Cached, and confirmed by the read before.
    expect(await other.directory.find(secret)).toMatchObject({ hasBalance: false, limits: {} });
    await other.poll();
    expect(await other.directory.find(secret)).toMatchObject({
      hasBalance: true,
      limits: { concurrency: 3 },
    });
    await one.store.revokeKey(id, 5);
    await other.poll();
    expect(await other.directory.find(secret)).toBeNull();
  });

  test('count within two seconds on a node whose connections hang', async () => {
    const { proxy, url } = await bench.proxy();
    const [one, cut] = [await startNode(), await startNode(url)];
    const { id, secret } = mintKey(Buffer.alloc(44, '3'));
    await one.store.createKey({ ...payingKey, id, hasBalance: false }, hashKey(secret), null);
    await cut.poll();
    expect(await cut.directory.find(secret)).toMatchObject({ id });
    proxy.mode = 'mute';
    await one.store.revokeKey(id, 5);
    cut.clock.advance(1_000);
    expect(await cut.directory.find(secret)).toMatchObject({ id });
    cut.clock.advance(1_001);
    const found = cut.directory.find(secret);
    cut.clock.advance(5_000);
    expect(await found).toMatchObject({ code: 'storage_unavailable' });
    proxy.mode = 'open';
    proxy.reset();
    await eventually('it answers again', async () => (await cut.directory.find(secret)) === null);
  });

  test('are not read as unchanged when their count is missing', async () => {
    const { engine, shared } = await startNode();
    const [[row] = []] = await engine.run([say('DELETE FROM key_changes RETURNING count')]);
    await expect(shared.changes.find()).rejects.toThrow('the count of key changes is missing');
    await engine.run([say('INSERT INTO key_changes VALUES (?)', Number(row?.['count']))]);
    await shared.changes.find();
  });
});

describe.skipIf(postgresAbsence !== null)(`requests of several nodes on PostgreSQL${absent}`, () => {
  test('are listed on each of them, oldest first, with what is known of them and who runs them', async () => {
    const [one, other, dead] = [await startNode(), await startNode(), await startNode()];
    await other.poll();
    await eventually('it has a name', async () => !(await other.shared.changes.find()).lacksName);
    const [waiting, admitted, begun, passed, lost] = [1, 2, 4, 5, 6].map((ms) =>
      requestIdAt(arrivedMs + ms),
    ) as [string, string, string, string, string];
    const own = requestIdAt(arrivedMs + 3);
    one.begin(own, { createdAtMs: arrivedMs + 3 });
    await write(one, 'slots', own);
    await write(other, 'waiting_requests', waiting);
    await write(other, 'slots', admitted);
    await write(other, 'slots', begun);
    await write(other, 'open_requests', begun);
    await write(other, 'open_requests', passed, { protocol: 'passthrough', model: '/v1/x' });
    await write(dead, 'open_requests', lost);
    await dead.endLease();

    const { name } = other.shared;
    expect(name).toMatch(/^.+:\d+$/);
    const unknown = {
      keyId: 'key_a',
      groupId: null,
      protocol: null,
      hasSlot: true,
      permitWait: null,
      mode: null,
      model: null,
      upstream: null,
      firstTextMs: null,
      listening: null,
      joined: null,
      node: name,
    };
    const told = { protocol: 'responses', mode: 'stream', model: 'm', upstream: 'u' };
    expect(await one.running.list()).toEqual([
      { ...unknown, requestId: waiting, createdAtMs: arrivedMs + 1, hasSlot: false },
      { ...unknown, requestId: admitted, createdAtMs: arrivedMs + 2 },
      { ...ownView, requestId: own, createdAtMs: arrivedMs + 3, node: one.shared.name },
      { ...unknown, ...told, requestId: begun, createdAtMs: arrivedMs + 4 },
      { ...unknown, protocol: 'passthrough', upstream: 'u', requestId: passed, createdAtMs: arrivedMs + 5 },
    ]);
    // Its own request is in no list of this kind but that of the others.
    const seen = (await other.shared.runningElsewhere.list()).map(({ requestId }) => requestId);
    expect(seen).toEqual([own]);
  });

  test('are listed up to a thousand, and those that arrived first', async () => {
    const [one, other] = [await startNode(), await startNode()];
    await other.engine.run([
      say(
        `INSERT INTO slots (request_id, key_id, owner)
         SELECT 'req_' || lpad(to_hex(CAST(? AS BIGINT) + n), 12, '0') || '00000000000000000000', 'key_many', ?
         FROM generate_series(1, 1200) AS n`,
        1_000_000_000_000,
        other.owner,
      ),
    ]);
    const listed = await one.running.list();
    expect(listed).toHaveLength(1_000);
    expect(listed[999]?.createdAtMs).toBe(1_000_000_001_000);
    await other.endLease();
  });

  test('are counted per key by their slots, wherever they run', async () => {
    const node = await startNode();
    await node.engine.run([
      say(`INSERT INTO key_limits (key_id, running) VALUES ('key_b', 3), ('key_c', 0)`),
    ]);
    expect([...(await node.running.count(['key_b', 'key_c', 'key_none']))]).toEqual([
      ['key_b', 3],
      ['key_c', 0],
    ]);
    expect((await node.running.count([])).size).toBe(0);
  });

  test.each(['waiting_requests', 'slots', 'open_requests'] as const)(
    'are stopped by the node that runs them when another one cancels them (%s)',
    async (table) => {
      const [one, other] = [await startNode(), await startNode()];
      const requestId = `req_${randomUUID().replaceAll('-', '')}`;
      const interruptions = other.begin(requestId);
      await write(other, table, requestId);
      expect(await one.running.cancel(requestId, 'key_b')).toBe(false);
      await other.poll();
      expect(interruptions).toEqual([]);
      expect(await one.running.cancel(requestId, 'key_a')).toBe(true);
      expect(await one.running.cancel(requestId)).toBe(true);
      await other.poll();
      await eventually('it is stopped', () => interruptions.includes('cancelled'));
      // By the next read at the latest: at the first one the lease may still be given its name.
      await eventually('the cancellation is removed', async () => {
        await other.poll();
        const left = await bench.sql(`SELECT FROM cancellations WHERE request_id = '${requestId}'`);
        return left.length === 0;
      });
      expect(other.faults).toEqual([]);
    },
  );

  test('are cancelled at once on their own node, and nowhere when they have ended', async () => {
    const [one, other] = [await startNode(), await startNode()];
    const requestId = `req_${randomUUID().replaceAll('-', '')}`;
    const interruptions = one.begin(requestId);
    await write(one, 'slots', requestId);
    expect(await one.running.cancel(requestId)).toBe(true);
    expect(interruptions).toEqual(['cancelled']);
    // A node never writes a cancellation for itself: what has ended here is over, though its row may be left.
    const ended = `req_${randomUUID().replaceAll('-', '')}`;
    await write(one, 'slots', ended);
    expect(await one.running.cancel(ended)).toBe(false);
    expect(await one.running.cancel(`req_${'f'.repeat(32)}`)).toBe(false);
    expect(await one.running.cancel('any other text')).toBe(false);
    expect(await other.running.cancel(requestId)).toBe(true);
  });

  test('of a node without a lease are not cancelled, and cancellations for it are removed', async () => {
    const [one, dead, other] = [await startNode(), await startNode(), await startNode()];
    const [early, late, next] = [1, 2, 3].map(() => `req_${randomUUID().replaceAll('-', '')}`) as [
      string,
      string,
      string,
    ];
    await write(dead, 'slots', early);
    await write(dead, 'slots', late);
    await write(other, 'slots', next);
    expect(await one.running.cancel(early)).toBe(true);
    await dead.endLease();
    expect(await one.running.cancel(late)).toBe(false);
    expect(await one.running.cancel(next)).toBe(true);
    const left = await bench.sql(`SELECT request_id FROM cancellations WHERE owner = '${dead.owner}'`);
    expect(left).toEqual([]);
  });

  test('are looked up for cancellations 64 at a time, and refused as an outage beyond that', async () => {
    const node = await startNode();
    const asked = Array.from({ length: 100 }, async () =>
      node.running.cancel(`req_${randomUUID().replaceAll('-', '')}`).catch((error: unknown) => String(error)),
    );
    const answers = await Promise.all(asked);
    expect(answers.filter((answer) => answer === false)).toHaveLength(64);
    expect(new Set(answers)).toEqual(new Set([false, 'StorageError: too many cancellations are looked up']));
    expect(await node.running.cancel(requestIdAt(1))).toBe(false);
  });
});

describe.skipIf(postgresAbsence !== null)(`the duty to audit on PostgreSQL${absent}`, () => {
  test('is one node’s, until it has no lease any more', async () => {
    await bench.sql('DELETE FROM duties');
    const nodes = [await startNode(), await startNode(), await startNode()];
    const ask = () => Promise.all(nodes.map(({ shared }) => shared.ledgerDuty.isOurs()));
    const first = await ask();
    expect(first.filter(Boolean)).toHaveLength(1);
    expect(await ask()).toEqual(first);
    await nodes[first.indexOf(true)]?.endLease();
    const second = await ask();
    expect(second.filter(Boolean)).toHaveLength(1);
    expect(second.indexOf(true)).not.toBe(first.indexOf(true));
    for (const node of nodes) await node.endLease();
    expect(await ask()).toEqual([false, false, false]);
  });
});

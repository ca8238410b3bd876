import { randomUUID } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { Client } from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/composition/clock.ts';
import type { StorageError } from '../../src/domain/storage-refusal.ts';
import type { KeptConnection } from '../../src/storage/postgres/connection/connection.ts';
import { createPostgresEngine } from '../../src/storage/postgres/engine.ts';
import { migrations } from '../../src/storage/postgres/schema.ts';
import { maxWaitingQueries } from '../../src/storage/postgres/connection/session.ts';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import type { FakeClock } from '../support/fake-clock.ts';
import { password, rejection, usePostgresBench } from '../support/postgres-bench.ts';
import { errorMessage } from '../support/postgres-error.ts';
import { keep } from '../support/postgres-connection.ts';
import type { TcpProxy } from '../support/tcp-proxy.ts';
import { createDatabase, postgresAbsence } from '../support/test-postgres.ts';

const one = [{ text: 'SELECT 1 AS one' }];
const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;

/** Advances the clock until a promise is settled. */
async function settledWithin(clock: FakeClock, promise: Promise<unknown>, stepMs = 10): Promise<void> {
  let isSettled = false;
  const settle = (): void => void (isSettled = true);
  promise.then(settle, settle);
  await eventually('the promise is settled', () => {
    clock.advance(stepMs);
    return isSettled;
  });
}

/** Ends the pause of a lost connection, and expects that it is opened and answers. */
async function answersAgain(connection: KeptConnection, clock: FakeClock, proxy: TcpProxy): Promise<void> {
  await eventually('it pauses', () => clock.scheduled === 1 && proxy.open === 0 && connection.fault !== null);
  clock.advance(2_000);
  await eventually('it is open again', () => connection.fault === null);
  await expect(connection.send(one)).resolves.toMatchObject([{ rows: [{ one: 1 }] }]);
}

describe.skipIf(postgresAbsence !== null)(`a connection to PostgreSQL that can't be opened${absent}`, () => {
  const bench = usePostgresBench();

  test('is refused for now after 10 seconds without a server, with what to do and no password', async () => {
    const url = new URL((await bench.proxy()).url);
    // Nothing listens there, and no other test is given it, as a port that was just freed may be.
    url.port = '1';
    const { connection, clock } = keep(url.href);
    const opened = rejection(connection.opened);
    await settledWithin(clock, opened);
    expect(clock.monotonicMs()).toBeGreaterThanOrEqual(10_000);
    const { message, reason } = await opened;
    expect(message).toMatch(
      /127\.0\.0\.1:\d+.* can't be reached: .*ECONNREFUSED.*: start the server, or correct/,
    );
    expect(message).not.toContain(password);
    expect(reason).toBe('unavailable');
    await eventually('it is not tried again', () => clock.scheduled === 0);
  });

  test.each([
    [
      '28P01',
      'password authentication failed for user "x"',
      'correct the user and the password in storage.url',
    ],
    ['28000', 'no pg_hba.conf entry', 'pg_hba.conf'],
    ['3D000', 'database "x" does not exist', 'create the database'],
    ['42501', 'permission denied for database', 'grant the user'],
  ])('is refused at once, and says what to do, where the server answers %s', async (code, text, advice) => {
    const { proxy, url } = await bench.proxy();
    proxy.answers = [errorMessage(code, text)];
    const { connection, clock } = keep(url);
    const { message, isPermanent } = await rejection(connection.opened);
    expect(message).toContain(text);
    expect(message).toContain(advice);
    expect(message).not.toContain(password);
    expect(isPermanent).toBe(false);
    await eventually('it is not tried again', () => clock.scheduled === 0);
    expect(proxy.accepted).toBe(1);
  });

  test('says that the URL has no password where the server asks for one', async () => {
    const { proxy, url } = await bench.proxy();
    // AuthenticationSASL with SCRAM-SHA-256, then its continuation.
    const mechanisms = Buffer.from('R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0');
    const challenge = Buffer.from('r=x,s=c2FsdA==,i=4096');
    const head = Buffer.from('R\0\0\0\0\0\0\0\x0b');
    head.writeInt32BE(challenge.length + 8, 1);
    proxy.answers = [mechanisms, Buffer.concat([head, challenge])];
    const without = new URL(url);
    without.password = '';
    const { message } = await rejection(keep(without.href).connection.opened);
    expect(message).toContain(
      "can't be reached: the server asks for a password, and there is none: write a password into storage.url",
    );
    expect(message).not.toContain('SASL');
    const { message: other } = await rejection(keep(url).connection.opened);
    expect(other).toContain('correct the password');
    expect(other).not.toContain(password);
  });

  test.each([
    ['sorry, too many clients already', 'raise max_connections of the server, or the CONNECTION LIMIT of'],
    ['zu viele Verbindungen für Rolle »me«', 'or the CONNECTION LIMIT of the role or the database'],
    ['too many connections for role "me"', "raise the role's limit (ALTER ROLE"],
    ['too many connections for database "gate"', "raise the database's limit (ALTER DATABASE"],
  ])('names the limit that is reached where the server says: %s', async (text, advice) => {
    const { proxy, url } = await bench.proxy();
    proxy.answers = [errorMessage('53300', text)];
    const { connection } = keep(url);
    await eventually('it is refused', () => connection.fault?.message.includes(text) ?? false);
    expect(connection.fault?.message).toContain(advice);
  });

  test('is opened once the server has started', async () => {
    const { proxy, url } = await bench.proxy();
    proxy.answers = [errorMessage('57P03', 'the database system is starting up')];
    const { connection, clock } = keep(url);
    await eventually('it was tried several times', () => {
      clock.advance(20);
      return proxy.accepted > 3;
    });
    expect(connection.fault?.message).toContain('starting up');
    await expect(connection.send(one)).rejects.toMatchObject({ isPermanent: false });
    proxy.answers = null;
    await answersAgain(connection, clock, proxy);
    await connection.opened;
  });

  test('is given up after 5 seconds by a server that accepts it and answers nothing', async () => {
    const { proxy, url } = await bench.proxy();
    proxy.mode = 'stalled';
    const { connection, clock } = keep(url);
    await eventually('it is accepted', () => proxy.accepted === 1);
    clock.advance(5_000);
    await eventually('it is closed', () => proxy.open === 0);
    await eventually('the reason is known', () => /within 5 seconds/.test(connection.fault?.message ?? ''));
    proxy.mode = 'open';
    await answersAgain(connection, clock, proxy);
  });

  test('waits for a standby to be promoted', async () => {
    const { proxy, url } = await bench.proxy();
    await bench.sql(
      `CREATE FUNCTION public.pg_is_in_recovery() RETURNS boolean LANGUAGE sql AS 'SELECT true'`,
    );
    const { database } = (await bench.sql('SELECT current_database() AS database'))[0] ?? {};
    await bench.sql(`ALTER DATABASE ${String(database)} SET search_path = public, pg_catalog`);
    const { connection, clock } = keep(url);
    await eventually('it is refused', () => /it is a standby/.test(connection.fault?.message ?? ''));
    expect(connection.fault).toMatchObject({ reason: 'read_only', isPermanent: false });
    await bench.sql('DROP FUNCTION public.pg_is_in_recovery()');
    await bench.sql(`ALTER DATABASE ${String(database)} RESET search_path`);
    await answersAgain(connection, clock, proxy);
  });
});

describe.skipIf(postgresAbsence !== null)(`a connection to PostgreSQL that is lost${absent}`, () => {
  const bench = usePostgresBench();
  const open = async () => {
    const { proxy, url } = await bench.proxy();
    const kept = keep(url);
    await kept.connection.opened;
    return { ...kept, proxy };
  };
  type Lost = Awaited<ReturnType<typeof open>>;
  /** Queries of which the first one takes longer than the test. */
  const sendWaiting = async (connection: KeptConnection): Promise<Promise<StorageError>[]> => {
    const text = `SELECT pg_sleep(60) AS "${randomUUID()}"`;
    const sent = [1, 2, 3].map(() => rejection(connection.send([{ text }, ...one])));
    await eventually('the server works on it', async () => {
      const busy = await bench.sql(`SELECT 1 FROM pg_stat_activity WHERE query = '${text}'`);
      return busy.length === 1;
    });
    return sent;
  };
  const terminate = () =>
    bench.sql(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND application_name = 'textgate'`);

  test.each([
    ['terminated by the server', () => terminate()],
    ['reset', ({ proxy }: Lost) => Promise.resolve(proxy.reset())],
    ['ended', ({ proxy }: Lost) => Promise.resolve(proxy.end())],
  ])('rejects for now what waits when it is %s, and is opened again', async (_how, lose) => {
    const kept = await open();
    const waiting = await sendWaiting(kept.connection);
    await lose(kept);
    for (const error of await Promise.all(waiting)) expect(error).toMatchObject({ isPermanent: false });
    expect(kept.connection.fault?.message).toContain("can't be reached");
    expect(kept.connection.waiting).toBe(0);
    await expect(kept.connection.send(one)).rejects.toMatchObject({ isPermanent: false });
    await answersAgain(kept.connection, kept.clock, kept.proxy);
    await lose(kept);
    await eventually('the loss of an idle connection is seen', () => kept.connection.fault !== null);
    await answersAgain(kept.connection, kept.clock, kept.proxy);
  });

  test('is opened again after pauses that double up to 2 seconds', async () => {
    const { connection, clock, proxy } = await open();
    proxy.answers = [errorMessage('57P03', 'the database system is starting up')];
    const pauses: number[] = [];
    proxy.reset();
    for (let tries = 1; tries < 9; tries++) {
      await eventually('it waits', () => clock.scheduled === 1 && proxy.open === 0);
      const sinceMs = clock.monotonicMs();
      while (clock.scheduled === 1 && clock.monotonicMs() < sinceMs + 10_000) clock.advance(1);
      pauses.push(clock.monotonicMs() - sinceMs);
      await eventually('it is tried', () => proxy.accepted === tries + 1);
    }
    expect(pauses).toEqual([50, 100, 200, 400, 800, 1_600, 2_000, 2_000]);
    proxy.answers = null;
    await answersAgain(connection, clock, proxy);
  });

  test('is given up when nothing is answered for 7 seconds', async () => {
    const { connection, clock, proxy } = await open();
    proxy.mode = 'stalled';
    clock.advance(60_000);
    const waiting = connection.send(one).then(
      () => 'answered',
      (error: StorageError) => error.reason,
    );
    clock.advance(6_999);
    expect(connection.fault).toBeNull();
    clock.advance(1);
    expect(await waiting).toBe('slow');
    proxy.mode = 'open';
    await answersAgain(connection, clock, proxy);
  });

  test('is opened again after growing pauses up to a minute while it is silent each time, and soon after it was used', async () => {
    const { connection, clock, proxy } = await open();
    /** Has the connection be lost, and returns the pause before the next one, in milliseconds. */
    const pauseAfter = async (lose: () => Promise<unknown>): Promise<number> => {
      await lose();
      await eventually('it pauses', () => {
        return clock.scheduled === 1 && proxy.open === 0 && connection.fault !== null;
      });
      const [sinceMs, { accepted }] = [clock.monotonicMs(), proxy];
      while (clock.scheduled === 1 && clock.monotonicMs() < sinceMs + 100_000) clock.advance(1);
      const pauseMs = clock.monotonicMs() - sinceMs;
      await eventually('it is open again', () => connection.fault === null);
      expect(proxy.accepted).toBe(accepted + 1);
      return pauseMs;
    };
    const silence = async (): Promise<void> => {
      proxy.forget();
      const lost = rejection(connection.send(one));
      clock.advance(7_000);
      expect(await lost).toMatchObject({ reason: 'slow' });
    };
    const pauses: number[] = [];
    for (let time = 0; time < 7; time++) pauses.push(await pauseAfter(silence));
    expect(pauses).toEqual([50, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
    // Used for a minute in between: what was before does not count.
    clock.advance(60_000);
    expect([await pauseAfter(silence), await pauseAfter(silence)]).toEqual([50, 4_000]);
    // A loss that is no silence ends the row of them.
    clock.advance(10_000);
    const reset = (): Promise<void> => Promise.resolve(proxy.reset());
    expect([await pauseAfter(reset), await pauseAfter(silence)]).toEqual([50, 50]);
  });

  test('is not given up while it answers, however long that takes altogether', async () => {
    const { connection, clock } = await open();
    const other = keep(bench.url).connection;
    await other.opened;
    await other.send([{ text: 'SELECT pg_advisory_lock(1), pg_advisory_lock(2)' }]);
    const first = connection.send([{ text: 'SELECT pg_advisory_lock(1)' }]);
    const second = connection.send([{ text: 'SELECT pg_advisory_lock(2)' }]);
    clock.advance(6_000);
    await other.send([{ text: 'SELECT pg_advisory_unlock(1)' }]);
    await first;
    clock.advance(6_000);
    expect(connection.fault).toBeNull();
    await other.send([{ text: 'SELECT pg_advisory_unlock(2)' }]);
    await second;
  });

  test('is ended by the server, too, when it is abandoned in a transaction that others wait for', async () => {
    const { connection } = await open();
    const names = ['idle_in_transaction_session_timeout', 'tcp_user_timeout', 'tcp_keepalives_idle'];
    const [answer] = await connection.send([
      { text: `SELECT ${names.map((name) => `current_setting('${name}') AS ${name}`).join()}` },
    ]);
    expect(answer?.rows).toEqual([
      { idle_in_transaction_session_timeout: '10s', tcp_user_timeout: '10000', tcp_keepalives_idle: '10' },
    ]);
  });

  test('refuses more queries than may wait, and answers those that do', async () => {
    const { connection } = await open();
    const all = connection.send(
      Array.from({ length: maxWaitingQueries }, () => ({ text: 'SELECT 1 AS one' })),
    );
    await expect(connection.send(one)).rejects.toMatchObject({ reason: 'slow', isPermanent: false });
    expect(await all).toHaveLength(maxWaitingQueries);
    await connection.send(one);
  });
});

describe.skipIf(postgresAbsence !== null)(`closing a connection to PostgreSQL${absent}`, () => {
  const bench = usePostgresBench();

  /** Closes it twice, while its time goes on, and expects that nothing is left of it. */
  async function expectCleanClose(
    { connection, clock }: { connection: KeptConnection; clock: FakeClock },
    open: () => number,
  ): Promise<void> {
    const closed = Promise.all([connection.close(), connection.close()]);
    await settledWithin(clock, closed, 100);
    await closed;
    expect(clock.scheduled).toBe(0);
    await eventually('its socket is closed', () => open() === 0);
    await expect(connection.send(one)).rejects.toMatchObject({ reason: 'closed' });
    clock.advance(60_000);
    await setImmediate();
    expect(open()).toBe(0);
  }

  test('ends it in every state, and leaves no socket and no timer', async () => {
    for (const state of [
      'new',
      'connecting',
      'refused',
      'pausing',
      'idle',
      'idle and cut',
      'lost',
    ] as const) {
      const { proxy, url } = await bench.proxy();
      if (state === 'connecting') proxy.mode = 'stalled';
      if (state === 'refused' || state === 'pausing') await proxy.refuse();
      const kept = keep(url);
      if (state === 'connecting') await eventually('it is accepted', () => proxy.accepted === 1);
      if (state === 'pausing')
        await eventually('it pauses', () => /REFUSED/.test(kept.connection.fault?.message ?? ''));
      if (state === 'idle' || state === 'idle and cut' || state === 'lost') await kept.connection.opened;
      if (state === 'idle and cut') proxy.mode = 'stalled';
      if (state === 'lost') {
        proxy.reset();
        await eventually('it is lost', () => kept.connection.fault !== null);
      }
      await expectCleanClose(kept, () => proxy.open);
    }
  });

  test('waits for what was sent', async () => {
    const { proxy, url } = await bench.proxy();
    const kept = keep(url);
    await kept.connection.opened;
    const sent = kept.connection.send([{ text: 'SELECT pg_sleep(0.05)' }, ...one]);
    await Promise.all([expect(sent).resolves.toHaveLength(2), kept.connection.close()]);
    await expectCleanClose(kept, () => proxy.open);
  });

  test('rejects what was sent when it is not answered any more', async () => {
    const { proxy, url } = await bench.proxy();
    const kept = keep(url);
    await kept.connection.opened;
    proxy.mode = 'stalled';
    const sent = rejection(kept.connection.send(one));
    await expectCleanClose(kept, () => proxy.open);
    expect(await sent).toMatchObject({ reason: 'slow' });
  });
});

test.skipIf(postgresAbsence !== null)(
  `a start goes on when its connection is lost while the tables are created${absent}`,
  async () => {
    const database = await createDatabase();
    onTestFinished(() => database.drop());
    const other = new Client({ connectionString: database.url });
    await other.connect();
    onTestFinished(() => other.end());
    // Nodes that start together wait for each other so.
    await other.query('BEGIN; SELECT pg_advisory_xact_lock(7483912)');
    const engine = createPostgresEngine({ url: database.url, clock: systemClock });
    onTestFinished(() => engine.close());
    const waiting = `SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
    let first: number | undefined;
    await eventually('it waits', async () => {
      first = (await other.query<{ readonly pid: number }>(waiting)).rows[0]?.pid;
      return first !== undefined;
    });
    await other.query('SELECT pg_terminate_backend($1)', [first]);
    await eventually('it waits again', async () => {
      const again = (await other.query<{ readonly pid: number }>(waiting)).rows[0]?.pid;
      return again !== undefined && again !== first;
    });
    await other.query('COMMIT');
    await expect(engine.ready).resolves.toBeUndefined();
  },
);

test.skipIf(postgresAbsence !== null)(
  `a start that the database answers with an error is not tried again: it says so at once${absent}`,
  async () => {
    const database = await createDatabase();
    onTestFinished(() => database.drop());
    const [first] = migrations;
    if (first === undefined) throw new Error('there is no step');
    const sql = `DO $$ BEGIN RAISE EXCEPTION 'out of shared memory' USING ERRCODE = '53200'; END $$`;
    // No time passes by its clock: it can't wait.
    const engine = createPostgresEngine({
      url: database.url,
      clock: createFakeClock(),
      steps: [{ ...first, sql }],
    });
    onTestFinished(() => engine.close());
    await expect(engine.ready).rejects.toThrow('out of shared memory');
  },
);

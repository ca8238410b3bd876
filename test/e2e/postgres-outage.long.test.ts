import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { readLive } from '../support/live-answer.ts';
import { chatFrames, sayTexts, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { serveFolder } from '../support/served-folder.ts';
import type { ServedFolder } from '../support/served-folder.ts';
import type { TextgateProcess } from '../support/textgate-process.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import type { TcpProxy } from '../support/tcp-proxy.ts';
import { pgbouncerAbsence, startPgBouncer } from '../support/pgbouncer.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { freePorts, startTextgate } from '../support/textgate-process.ts';
import { createDatabase, onServer, postgresAbsence } from '../support/test-postgres.ts';
import type { TestDatabase } from '../support/test-postgres.ts';

const password = 'pass-w0rd-of-the-database';

/** The time that a test may take, in milliseconds: processes are started, and a first connection is tried for ten seconds. */
const slow = 90_000;

describe.skipIf(postgresAbsence !== null)('a process on PostgreSQL', () => {
  let database: TestDatabase;
  let folder: string;
  let proxy: TcpProxy;
  let url: string;
  beforeEach(async () => {
    database = await createDatabase();
    folder = makeTemporaryFolder();
    const server = new URL(database.url);
    proxy = await startTcpProxy({ host: server.hostname, port: Number(server.port) });
    Object.assign(server, { hostname: '127.0.0.1', port: String(proxy.port), password });
    url = server.href;
  });
  afterEach(async () => {
    await proxy.close();
    await database.drop();
  });

  async function startStreams(): Promise<{ upstream: ScriptedUpstream; finish: () => void }> {
    const upstream = await startUpstream();
    onTestFinished(() => upstream.close());
    const frames = chatFrames(['the beginning', ' and the end']);
    const finished = Promise.withResolvers<void>();
    upstream.play(async (response) => {
      sendStream(response, frames.slice(0, 2));
      await finished.promise;
      response.end(frames.slice(2).join(''));
    });
    return { upstream, finish: () => finished.resolve() };
  }

  const post = ({ url: served }: ServedFolder, key: string): Promise<Response> =>
    fetch(`${served}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'small', stream: true, messages: [{ role: 'user', content: 'x' }] }),
    });

  async function cutOff(): Promise<void> {
    await proxy.refuse();
    proxy.reset();
  }

  /** What was charged, as often as it was, and the records that are open. */
  async function readBooks() {
    const charges = await onServer(`SELECT delta FROM ledger WHERE kind = 'charge'`, database.url);
    const [open] = await onServer('SELECT count(*) AS count FROM open_requests', database.url);
    const records = await onServer('SELECT outcome, charge FROM records', database.url);
    return {
      charges: charges.map(({ delta }) => Number(delta)),
      open: Number(open?.['count']),
      records: records.map(({ outcome, charge }) => [outcome, Number(charge)]),
    };
  }

  const onceSettled = { charges: [-25_000], open: 0, records: [['completed', 25_000]] };

  /** Begins an answer, takes the database away in the middle of it, and reads the answer to its end. */
  async function loseDatabaseInAnswer(
    cut = cutOff,
  ): Promise<{ gateway: ServedFolder<TextgateProcess>; key: string }> {
    const { upstream, finish } = await startStreams();
    const gateway = await serveFolder(folder, upstream.url, url);
    const { key } = await gateway.ask('POST', '/keys', { name: 'payer', balance: '1.00' });
    const answer = readLive(post(gateway, key));
    await eventually('the answer has begun', () => answer.text.includes('the beginning'));
    await cut();
    await eventually('new work is refused', async () => {
      const refused = await post(gateway, key);
      const { error } = (await refused.json()) as { error?: { code?: string } };
      return (
        refused.status === 503 &&
        error?.code === 'storage_unavailable' &&
        refused.headers.get('retry-after') === '5'
      );
    });
    finish();
    await answer.ended;
    expect(answer).toMatchObject({ status: 200, broken: false });
    expect(answer.text).toContain('[DONE]');
    await eventually('the settlement is in the spool', () =>
      readdirSync(join(folder, 'spool'))
        .filter((name) => name.endsWith('.spool'))
        .some((name) => readFileSync(join(folder, 'spool', name), 'utf8').includes('"chargeNanos":25000')),
    );
    return { gateway, key };
  }

  test(
    'that loses the database refuses new work, finishes what runs, and settles it when the database is back',
    async () => {
      const { gateway, key } = await loseDatabaseInAnswer();
      await proxy.accept();
      await eventually('it is settled', async () => (await readBooks()).open === 0);
      await eventually('it serves again', async () => (await post(gateway, key)).status === 200);
      expect((await readBooks()).charges[0]).toBe(-25_000);
      await eventually('the second one is settled, too', async () => (await readBooks()).open === 0);
      expect((await readBooks()).charges).toEqual([-25_000, -25_000]);
      const metrics = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
      gateway.server.signal('SIGTERM');
      const { code, stdout, stderr } = await gateway.server.finished;
      expect(code).toBe(0);
      const logged = stdout.split('\n').filter((line) => line.includes('connection to the database'));
      expect(logged.map((line) => (JSON.parse(line) as { msg: string }).msg)).toEqual([
        'the connection to the database was lost',
        'the connection to the database is back',
      ]);
      expect(stdout + stderr + metrics).not.toContain(password);
    },
    slow,
  );

  test.skipIf(pgbouncerAbsence !== null).each(['pooler', 'server behind the pooler'] as const)(
    `that loses the %s refuses new work and settles what ran once it is back${pgbouncerAbsence === null ? '' : ` (${pgbouncerAbsence})`}`,
    async (what) => {
      const pooler = await startPgBouncer(url, { pool_mode: 'session', server_login_retry: 1 });
      url = pooler.url;
      const isPooler = what === 'pooler';
      const { gateway, key } = await loseDatabaseInAnswer(isPooler ? () => pooler.kill() : cutOff);
      await (isPooler ? pooler.start() : proxy.accept());
      await eventually('it is settled', async () => (await readBooks()).open === 0);
      expect(await readBooks()).toEqual(onceSettled);
      await eventually('it serves again', async () => (await post(gateway, key)).status === 200);
      await eventually('the second one is settled, too', async () => (await readBooks()).open === 0);
      expect((await readBooks()).charges).toEqual([-25_000, -25_000]);
      expect(await gateway.ask('GET', '/ledger')).toMatchObject({ faults: [], imbalanceNanos: 0 });
    },
    slow,
  );

  test(
    'that is killed while the database is away leaves its settlements to the next one with its spool folder',
    async () => {
      const { gateway } = await loseDatabaseInAnswer();
      gateway.server.signal('SIGKILL');
      await gateway.server.finished;
      expect(await readBooks()).toMatchObject({ charges: [], open: 1 });
      await proxy.accept();
      const next = await serveFolder(folder, 'http://127.0.0.1:1/v1', url);
      await eventually('it is settled', async () => (await readBooks()).open === 0);
      expect(await readBooks()).toEqual(onceSettled);
      expect(await next.ask('GET', '/ledger')).toMatchObject({ faults: [], imbalanceNanos: 0 });
      const third = await serveFolder(folder, 'http://127.0.0.1:1/v1', url);
      third.server.signal('SIGTERM');
      await third.server.finished;
      expect(await readBooks()).toEqual(onceSettled);
    },
    slow,
  );

  test(
    'that can not reach the database at its start says so, without the password, and ends with 1',
    async () => {
      await proxy.refuse();
      const config = {
        storage: { url: '${DATABASE_URL}' },
        upstreams: { local: { url: 'demo:' } },
        models: { small: { routes: [{ upstream: 'local', model: 'demo' }], free: true } },
      };
      writeFileSync(join(folder, 'textgate.yaml'), JSON.stringify(config));
      const environment = { ...freePorts, DATABASE_URL: url };
      const failed = startTextgate(['serve', '--config', 'textgate.yaml'], folder, environment);
      const { code, stdout, stderr } = await failed.finished;
      expect(code).toBe(1);
      expect(stderr.replaceAll(/\s+/g, ' ')).toMatch(
        /can't start: the database postgres:\/\/\S+ can't be reached: connect ECONNREFUSED \S+: start the server, or/,
      );
      expect(stdout + stderr).not.toContain(password);
      const shown = await startTextgate(['config', 'show', 'textgate.yaml'], folder, environment).finished;
      expect(shown.stdout).toContain('(hidden-by-config-show)');
      expect(shown.stdout).not.toContain(password);
    },
    slow,
  );

  test(
    'prints the first key once, whichever of two nodes makes it, and shares the admin token beside its config file',
    async () => {
      const upstream = await startUpstream();
      onTestFinished(() => upstream.close());
      upstream.play(sayTexts(['x']));
      writeFileSync(join(folder, 'database-url'), `${url}\n`);
      const config = {
        storage: { url: { file: 'database-url' }, spool: 'spool' },
        upstreams: { local: { url: upstream.url } },
        models: { small: { routes: [{ upstream: 'local', model: 'tiny' }], free: true } },
      };
      writeFileSync(join(folder, 'textgate.yaml'), JSON.stringify(config));
      const nodes = [1, 2].map(() =>
        startTextgate(['serve', '--config', 'textgate.yaml'], folder, freePorts),
      );
      await Promise.all(nodes.map((node) => node.printed(/(first request|create another key|Or try it)/)));
      const errors = nodes.map((node) => node.errors());
      expect(errors.filter((text) => text.includes('This is your first key'))).toHaveLength(1);
      for (const text of errors) expect(text).toContain('(log in with the token in admin-token)');
      const told = errors.filter((text) => text.includes('other nodes on the database need the same one'));
      expect(told.length).toBeGreaterThanOrEqual(1);
      expect(await onServer('SELECT name FROM api_keys', database.url)).toEqual([{ name: 'first key' }]);
      expect(readdirSync(folder).toSorted()).toEqual([
        'admin-token',
        'database-url',
        'spool',
        'textgate.yaml',
      ]);
      for (const node of nodes) node.signal('SIGTERM');
      for (const { code } of await Promise.all(nodes.map(({ finished }) => finished))) expect(code).toBe(0);
    },
    slow,
  );
});

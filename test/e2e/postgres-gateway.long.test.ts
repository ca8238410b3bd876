import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { plant } from '../support/canaries.ts';
import { askAdmin } from '../support/admin-client.ts';
import { sayTexts, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';
import { createDatabase, postgresAbsence } from '../support/test-postgres.ts';
import type { TestDatabase } from '../support/test-postgres.ts';
import { eventually } from '../support/eventually.ts';

const password = 'pass-w0rd-of-the-database';

describe.skipIf(postgresAbsence !== null)('a gateway on PostgreSQL', () => {
  let database: TestDatabase;
  let upstream: ScriptedUpstream;
  beforeAll(async () => {
    database = await createDatabase();
    upstream = await startUpstream();
    upstream.play(sayTexts(['Hello', ' there']));
  });
  afterAll(async () => {
    await upstream.close();
    await database.drop();
  });

  /** Its close looks for the password in the log, the metrics and the errors. */
  async function start(spool = makeTemporaryFolder()): Promise<TestGateway> {
    const url = new URL(database.url);
    url.password = password;
    plant(password);
    const gateway = await startGateway({
      upstreamUrl: upstream.url,
      databaseUrl: url.href,
      spool,
      price: { input: '1', output: '2' },
    });
    onTestFinished(() => gateway.close());
    return gateway;
  }

  test('answers in both protocols, whole and streamed, records and charges each answer, and its ledger is right', async () => {
    const gateway = await start();
    const { key, secret } = await gateway.gateway.createKey('payer', { balanceNanos: 1_000_000 });
    const post = (path: string, body: object) =>
      gateway.post(path, { model: 'small', ...body }, { headers: { authorization: `Bearer ${secret}` } });
    const messages = [{ role: 'user', content: 'a question' }];
    const chat = await post('/v1/chat/completions', { messages });
    expect(await chat.json()).toMatchObject({ choices: [{ message: { content: 'Hello there' } }] });
    const streamed = await post('/v1/chat/completions', { messages, stream: true });
    expect(await streamed.text()).toMatch(/Hello[^]* there[^]*\[DONE\]/);
    const response = await post('/v1/responses', { input: 'a question' });
    expect(await response.json()).toMatchObject({ status: 'completed', usage: { output_tokens: 7 } });
    const events = await post('/v1/responses', { input: 'a question', stream: true });
    expect(await events.text()).toContain('response.completed');

    // 11 tokens of input and 7 of output cost 25,000 nano-USD each time.
    const { body: shown } = await askAdmin(gateway, 'GET', `/keys/${key.id}`);
    expect(shown).toMatchObject({ balance: '0.0009', held: '0.00', spent: '0.0001' });
    const { body: records } = await askAdmin(gateway, 'GET', `/records?key=${key.id}`);
    expect(records.data).toHaveLength(4);
    for (const record of records.data as readonly object[])
      expect(record).toMatchObject({ outcome: 'completed', charge: '0.000025' });
    const { body: ledger } = await askAdmin(gateway, 'GET', '/ledger');
    expect(ledger).toMatchObject({ faults: [], imbalanceNanos: 0 });
  });

  test('tells at /readyz what is shared, how old the newest commit is, and that there is no synchronous standby', async () => {
    const gateway = await start();
    let body: Record<string, unknown> = {};
    await eventually('the database has told its settings', async () => {
      body = (await (await fetch(`${gateway.adminUrl}/readyz`)).json()) as typeof body;
      return JSON.stringify(body).includes('"synchronous_standby":"none"');
    });
    expect(body).toMatchObject({
      status: 'ready',
      upstreams: {},
      database: {
        shared: expect.arrayContaining(['balances']),
        newest_commit_age_s: expect.any(Number),
        warnings: ['no synchronous standby: a failover of the database loses the last settlements'],
      },
    });
  });

  test('runs without a spool where the operator says so', async () => {
    const gateway = await start('none');
    const answer = await gateway.post('/v1/responses', { model: 'small', input: 'a question' });
    expect(answer.status).toBe(200);
    expect(existsSync('none')).toBe(false);
  });

  test('leaves backups to pg_dump', async () => {
    const { status, body } = await askAdmin(await start(), 'GET', '/backup');
    expect(status).toBe(400);
    expect(body.error.message).toContain('pg_dump');
  });

  test('has a spool of its own beside that of another node in the same folder', async () => {
    const folder = join(makeTemporaryFolder(), 'spools');
    await Promise.all([start(folder), start(folder)]);
    const spools = readdirSync(folder).filter((name) => name.endsWith('.spool'));
    expect(spools).toHaveLength(2);
    for (const name of spools) expect(name).toMatch(/^textgate-[0-9a-f]{12}-[01]\.spool$/);
  });
});

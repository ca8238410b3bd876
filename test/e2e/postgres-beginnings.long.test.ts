import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import OpenAI from 'openai';
import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { askAdmin } from '../support/admin-client.ts';
import { eventually } from '../support/eventually.ts';
import { sayTexts, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import { createDatabase, postgresAbsence } from '../support/test-postgres.ts';

const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;
const messages = [{ role: 'user' as const, content: 'a question' }];

function connectTo(url: string): Socket {
  const { port, hostname } = new URL(url);
  const socket = connect(Number(port), hostname);
  onTestFinished(() => void socket.destroy());
  return socket;
}

const headOf = (secret: string, body: string): string =>
  `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${secret}\r\n` +
  `Content-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n`;

describe.skipIf(postgresAbsence !== null)(`the beginning of a request on PostgreSQL${absent}`, () => {
  let upstream: ScriptedUpstream;
  beforeAll(async () => {
    upstream = await startUpstream();
    upstream.play(sayTexts(['Hello']));
  });
  afterAll(() => upstream.close());

  /** A gateway whose database knows the kinds of the records of its model. */
  async function start() {
    const database = await createDatabase();
    onTestFinished(() => database.drop());
    const client = new Client({ connectionString: database.url });
    await client.connect();
    onTestFinished(() => client.end());
    const gateway = await startGateway({
      upstreamUrl: upstream.url,
      databaseUrl: database.url,
      price: { input: '1', output: '2' },
    });
    onTestFinished(() => gateway.close());
    const ask = (secret: string, body: object | string = { model: 'small', messages }) =>
      gateway.post('/v1/chat/completions', body, { headers: { authorization: `Bearer ${secret}` } });
    const { secret: first } = await gateway.gateway.createKey('first', { balanceNanos: 1e9 });
    for (const stream of [false, true]) await (await ask(first, { model: 'small', messages, stream })).text();
    const sent = vi.spyOn(Client.prototype, 'query');
    onTestFinished(() => sent.mockRestore());
    /** The functions that requests have called since then, without releases: one is made where a settlement takes longer. */
    const calls = (): readonly string[] =>
      sent.mock.calls
        .map(([query]) => (query as { readonly name?: string }).name ?? '')
        .flatMap((name) => /^textgate_((begin|open|take|settle)_(record|slot))_/.exec(name)?.[1] ?? []);
    return { gateway, ask, calls, client };
  }

  test('is one call of the database, and its end another one, for whole answers and streams of the official client', async () => {
    const { gateway, calls } = await start();
    const { secret } = await gateway.gateway.createKey('payer', { balanceNanos: 1e9 });
    const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: secret, maxRetries: 0 });
    for (let round = 0; round < 3; round++) {
      await client.chat.completions.create({ model: 'small', messages });
      const stream = await client.chat.completions.create({ model: 'small', messages, stream: true });
      await Array.fromAsync(stream);
    }
    expect(calls()).toEqual(Array.from({ length: 6 }, () => ['begin_record', 'settle_record']).flat());
  });

  test('is two calls where the body comes behind its head, which is not read without a slot', async () => {
    const { gateway, calls } = await start();
    const { secret } = await gateway.gateway.createKey('payer', { balanceNanos: 1e9 });
    const body = JSON.stringify({ model: 'small', messages });
    const socket = connectTo(gateway.url);
    socket.write(headOf(secret, body));
    await eventually('its slot is taken', async () => (await gateway.gateway.inFlight()).data.length === 1);
    socket.write(body);
    const [answer] = (await once(socket.setEncoding('utf8'), 'data')) as [string];
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    expect(calls()).toEqual(['take_slot', 'open_record', 'settle_record']);
  });

  test('counts a request with a fault in its body as a start, and a limit is said before the fault', async () => {
    const { gateway, ask, client } = await start();
    const settings = { balanceNanos: 1e9, requestsPerMinute: 2 };
    const { secret, key } = await gateway.gateway.createKey('faulty', settings);
    for (const [body, status, remaining] of [
      ['{"model":', 400, '1'],
      [{ model: 'nowhere', messages }, 404, '0'],
      ['{"model":', 429, '0'],
      [{ model: 'small', messages }, 429, '0'],
    ] as const) {
      const answer = await ask(secret, body);
      expect([answer.status, answer.headers.get('x-ratelimit-remaining-requests')]).toEqual([
        status,
        remaining,
      ]);
    }
    const { rows } = await client.query('SELECT running, starts FROM key_limits WHERE key_id = $1', [key.id]);
    expect(rows).toEqual([{ running: '0', starts: '2' }]);
  });

  test('leaves no hold behind where there is no slot, and no slot where there is no balance', async () => {
    const { gateway, ask, client } = await start();
    const { secret, key } = await gateway.gateway.createKey('limited', {
      balanceNanos: 1e9,
      requestsPerMinute: 1,
    });
    const { secret: poor, key: poorKey } = await gateway.gateway.createKey('poor', { balanceNanos: 0 });
    expect((await ask(secret)).status).toBe(200);
    expect((await ask(secret)).status).toBe(429);
    const refused = await ask(poor);
    expect([refused.status, await refused.json()]).toMatchObject([
      402,
      { error: { code: 'insufficient_balance' } },
    ]);
    await eventually(
      'the slot is back',
      async () => (await client.query('SELECT FROM slots')).rowCount === 0,
    );
    const { body: shown } = await askAdmin(gateway, 'GET', `/keys/${key.id}`);
    expect(shown).toMatchObject({ held: '0.00' });
    const { body: records } = await askAdmin(gateway, 'GET', `/records?key=${poorKey.id}`);
    expect(records.data).toEqual([]);
    const { body: ledger } = await askAdmin(gateway, 'GET', '/ledger');
    expect(ledger).toMatchObject({ faults: [], imbalanceNanos: 0 });
    expect((await client.query('SELECT FROM open_rows')).rowCount).toBe(0);
  });

  test('that was begun with its slot is settled also where its client has left meanwhile', async () => {
    const { gateway, client } = await start();
    const { secret, key } = await gateway.gateway.createKey('leaver', { balanceNanos: 1e9 });
    await client.query('BEGIN');
    await client.query('SELECT FROM accounts WHERE key_id = $1 FOR UPDATE', [key.id]);
    const body = JSON.stringify({ model: 'small', messages });
    const socket = connectTo(gateway.url);
    socket.write(headOf(secret, body) + body);
    await eventually(
      'it waits for its account',
      async () => (await gateway.gateway.inFlight()).data.length === 1,
    );
    socket.resetAndDestroy();
    await once(socket, 'close');
    // What is answered behind the end of the connection was read behind it.
    await (await fetch(`${gateway.url}/v1/models`)).text();
    await client.query('COMMIT');
    await eventually('it is over', async () => (await gateway.gateway.inFlight()).data.length === 0);
    const { body: records } = await askAdmin(gateway, 'GET', `/records?key=${key.id}`);
    expect(records.data).toMatchObject([{ outcome: 'client_closed', charge: '0.00' }]);
    const { rows } = await client.query(
      'SELECT held, running, (SELECT count(*) FROM open_rows) AS open FROM accounts JOIN key_limits USING (key_id) WHERE key_id = $1',
      [key.id],
    );
    expect(rows).toEqual([{ held: '0', running: '0', open: '0' }]);
  });
});

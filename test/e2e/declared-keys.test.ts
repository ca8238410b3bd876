import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createGateway } from '../../src/gateway.ts';
import type { ConfigInput } from '../../src/config/schema/schema.ts';
import type { Gateway } from '../../src/gateway.ts';
import { hashKey } from '../../src/shared/digest.ts';
import { eventually } from '../support/eventually.ts';
import { findCanaries, plant, readDatabaseFiles } from '../support/canaries.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { serveHere } from '../support/serve-here.ts';
import { freePorts } from '../support/textgate-process.ts';

const adminToken = 'an-admin-token-for-tests';
const older = 'sk-Yq3vT9LmW0zKc7Rb1';
const other = 'fd2c9be07a5146d8a3b1';

interface Running {
  readonly gateway: Gateway;
  readonly lines: string[];
  /** Asks for a text with a key; resolves with the status and the body. */
  readonly ask: (key: string, path?: string) => Promise<{ status: number; text: string }>;
  // eslint-disable-next-line typescript/no-explicit-any -- what a test reads is checked by what it expects
  readonly admin: (method: string, path: string, body?: object) => Promise<{ status: number; body: any }>;
}

function configOf(keys: ConfigInput['keys'], database: string): ConfigInput {
  return {
    server: { port: 0 },
    admin: { port: 0, token: adminToken },
    storage: { url: `sqlite:${database}`, durability: 'normal' },
    upstreams: { demo: { url: 'demo:' } },
    models: { demo: { routes: [{ upstream: 'demo', model: 'demo' }], price: { input: '1', output: '1' } } },
    ...(keys === undefined ? {} : { keys }),
  };
}

async function start(keys: ConfigInput['keys'], database = ':memory:'): Promise<Running> {
  const lines: string[] = [];
  const logDestination = { write: (line: string) => void lines.push(line) };
  const gateway = createGateway(configOf(keys, database), { logDestination });
  onTestFinished(() => gateway.close());
  const { url, adminUrl } = await gateway.listen();
  return {
    gateway,
    lines,
    async ask(key, path = '/v1/chat/completions') {
      const response = await fetch(url + path, {
        method: path === '/v1/key' ? 'GET' : 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: path === '/v1/key' ? null : '{"model":"demo","messages":[{"role":"user","content":"x"}]}',
      });
      return { status: response.status, text: await response.text() };
    },
    async admin(method, path, body) {
      const response = await fetch(`${adminUrl}/admin/keys${path}`, {
        method,
        headers: { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      return { status: response.status, body: await response.json() };
    },
  };
}

describe('a declared key', () => {
  test('has the budget that is declared, and keeps what it has spent when that is changed', async () => {
    const budget = { amount: '0.000001', per: 'month', timeZone: 'Europe/Berlin' } as const;
    const { gateway, ask } = await start({ moved: { key: older, budget } });
    expect((await ask(older)).status).toBe(200);
    const refused = await ask(older);
    expect(refused).toMatchObject({ status: 402 });
    expect(JSON.parse(refused.text)).toMatchObject({ error: { code: 'budget_exhausted' } });
    const { spent } = JSON.parse((await ask(older, '/v1/key')).text).budget as { spent: string };
    gateway.reload(configOf({ moved: { key: older, budget: { ...budget, amount: '7.00' } } }, ':memory:'));
    await eventually('the larger budget is in force', async () =>
      (await ask(older, '/v1/key')).text.includes('7.00'),
    );
    expect(JSON.parse((await ask(older, '/v1/key')).text)).toMatchObject({
      budget: { amount: '7.00', spent },
    });
    expect((await ask(older)).status).toBe(200);
  });

  test('of an older gateway is used as it is, or by its hash alone, with its own limits and models', async () => {
    const { ask } = await start({
      moved: { key: older, requestsPerMinute: 3, models: ['demo'] },
      hashed: { key: `sha256:${hashKey(other)}`, models: ['demo'], queueWait: '250ms', joinRetries: '10s' },
    });
    expect((await ask(older)).status).toBe(200);
    expect((await ask(other)).status).toBe(200);
    expect(JSON.parse((await ask(older, '/v1/key')).text)).toMatchObject({
      name: 'moved',
      limits: { concurrency: 2, requests_per_minute: 3 },
      models: ['demo'],
    });
    expect(JSON.parse((await ask(other, '/v1/key')).text)).toMatchObject({
      limits: { queue_wait_ms: 250 },
      join_retries_ms: 10_000,
    });
    expect((await ask(`${older}2`)).status).toBe(401);
    expect((await ask(hashKey(other))).status).toBe(401);
  });

  test('is stored only as its hash, and is logged nowhere', async () => {
    plant(older);
    const database = join(makeTemporaryFolder(), 'textgate.db');
    const { ask, lines } = await start({ moved: { key: older } }, database);
    expect((await ask(older)).status).toBe(200);
    findCanaries({ database: readDatabaseFiles(database), 'the log': lines.join('') });
  });

  test('is the same key after a restart, which writes nothing', async () => {
    const database = join(makeTemporaryFolder(), 'textgate.db');
    const keys = {
      moved: { key: older, expiresAt: '2099-01-01', compatibility: { sampling: 'strict' } },
    } as const;
    const first = await start(keys, database);
    const { id } = JSON.parse((await first.ask(older, '/v1/key')).text) as { id: string };
    await first.gateway.close();
    const before = readRows(database);
    const second = await start(keys, database);
    expect(JSON.parse((await second.ask(older, '/v1/key')).text)).toMatchObject({ id });
    expect(second.lines.join('')).not.toContain('declared');
    await second.gateway.close();
    expect(readRows(database)).toEqual(before);
  });

  test('has the same id in every replica, because it follows from the name', async () => {
    const replicas = [await start({ moved: { key: older } }), await start({ moved: { key: other } })];
    const ids = await Promise.all(
      replicas.map(async ({ admin }) =>
        (await admin('GET', '')).body.data.map(({ id }: { id: string }) => id),
      ),
    );
    expect(ids[0]).toEqual(ids[1]);
    expect(ids[0]).toEqual([expect.stringMatching(/^key_[A-Za-z0-9]{12}$/)]);
  });
});

describe('a reload', () => {
  test('creates, changes and revokes declared keys from the next request on, and keeps their accounts', async () => {
    const { gateway, ask, admin } = await start({ moved: { key: older } });
    const [{ id }] = (await admin('GET', '')).body.data;
    expect((await admin('POST', `/${id}/credits`, { amount: '5.00', reference: 'r' })).body).toMatchObject({
      booked: true,
      balance: '5.00',
    });
    gateway.reload(configOf({ moved: { key: other }, more: { key: `${older}x` } }, ':memory:'));
    expect((await ask(older)).status).toBe(401);
    expect((await ask(`${older}x`)).status).toBe(200);
    expect(JSON.parse((await ask(other, '/v1/key')).text)).toMatchObject({ id, balance: '5.00' });

    gateway.reload(configOf({}, ':memory:'));
    expect([(await ask(other)).status, (await ask(`${older}x`)).status]).toEqual([401, 401]);
    gateway.reload(configOf({ moved: { key: other } }, ':memory:'));
    expect(JSON.parse((await ask(other, '/v1/key')).text)).toMatchObject({ id, balance: '5.00' });
  });

  test('with a bad key changes no key at all', async () => {
    const { gateway, ask } = await start({ moved: { key: older } });
    const bad = { fresh: { key: other }, short: { key: 'too-short' } };
    expect(() => gateway.reload(configOf(bad, ':memory:'))).toThrow(
      /keys\.short\.key: expected 20 characters/,
    );
    expect([(await ask(older)).status, (await ask(other)).status]).toEqual([200, 401]);
  });

  test('that changes other sections leaves the keys as they are', async () => {
    const { gateway, ask, lines } = await start({ moved: { key: older } });
    const count = lines.length;
    gateway.reload({ ...configOf({ moved: { key: older } }, ':memory:'), limits: { concurrency: 7 } });
    expect((await ask(older)).status).toBe(200);
    expect(lines.slice(count)).toEqual([]);
  });
});

describe('the admin API', () => {
  test('shows which keys are declared, and changes only their balance', async () => {
    const { gateway, admin, ask } = await start({ moved: { key: older } });
    const issued = await gateway.keys.create({ name: 'issued' });
    const { data } = (await admin('GET', '')).body;
    const shown = Object.fromEntries(
      data.map((key: { name: string; declared: boolean }) => [key.name, key.declared]),
    );
    expect(shown).toEqual({ moved: true, issued: false });
    const { id } = data.find(({ name }: { name: string }) => name === 'moved');
    for (const [method, path, body] of [
      ['PATCH', `/${id}`, { name: 'mine' }],
      ['DELETE', `/${id}`, undefined],
      ['POST', `/${id}/rotate`, {}],
    ] as const) {
      const { status, body: refusal } = await admin(method, path, body);
      expect(status).toBe(409);
      expect(refusal.error).toMatchObject({
        code: 'key_is_declared',
        message: expect.stringContaining('declared in the config: change it there'),
      });
    }
    expect((await ask(older)).status).toBe(200);
    expect((await admin('DELETE', `/${issued.id}`)).status).toBe(200);
    gateway.reload(configOf({}, ':memory:'));
    const refused = async (): Promise<string> =>
      (await admin('PATCH', `/${id}`, { name: 'mine' })).body.error.message;
    await eventually('it is stored as revoked', async () =>
      (await refused()).includes('Declare its name again'),
    );
  });

  test('makes no declared key visible as such to its holder', async () => {
    const { ask } = await start({ moved: { key: older } });
    expect((await ask(older, '/v1/key')).text).not.toContain('declared');
  });

  test('issued a key that is declared later: it keeps its id, and the config decides from then on', async () => {
    const { gateway, admin, ask } = await start({});
    const { id, key: secret } = await gateway.keys.create({ name: 'first key', balance: '1.00' });
    gateway.reload(configOf({ bob: { key: secret, models: ['demo'] } }, ':memory:'));
    expect(JSON.parse((await ask(secret, '/v1/key')).text)).toMatchObject({
      id,
      name: 'bob',
      models: ['demo'],
      balance: '1.00',
    });
    expect((await admin('DELETE', `/${id}`)).status).toBe(409);
  });
});

test('a request that comes before the database is open waits until its declared key is stored', async () => {
  const database = join(makeTemporaryFolder(), 'textgate.db');
  const gateway = createGateway(configOf({ moved: { key: older } }, database), { logLevel: 'silent' });
  onTestFinished(() => gateway.close());
  const { default: express } = await import('express');
  const server = express().use(gateway.router).listen(0);
  onTestFinished(() => void server.close());
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as { port: number };
  const headers = { authorization: `Bearer ${older}` };
  expect((await fetch(`http://127.0.0.1:${port}/v1/key`, { headers })).status).toBe(200);
});

test('a start that can not store its declared keys serves all others, and stores them when it can', async () => {
  const database = join(makeTemporaryFolder(), 'textgate.db');
  const first = await start({}, database);
  const { key: issued } = await first.gateway.keys.create({ name: 'issued' });
  await first.gateway.close();
  const direct = new DatabaseSync(database);
  onTestFinished(() => direct.close());
  direct.exec(
    `CREATE TRIGGER full BEFORE INSERT ON api_keys BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END`,
  );
  const { gateway, ask, lines } = await start({ moved: { key: older } }, database);
  expect([(await ask(issued)).status, (await ask(older)).status]).toEqual([200, 503]);
  expect(lines.join('')).toMatch(/database or disk is full.*declared keys could not be stored/);
  direct.exec('DROP TRIGGER full');
  gateway.reload(configOf({ moved: { key: older } }, database));
  expect((await ask(older)).status).toBe(200);
});

test('a gateway has keys as soon as it declares one', async () => {
  const keys = { moved: { key: older } };
  for (const [declared, expected] of [
    [keys, true],
    [{}, false],
  ] as const) {
    const gateway = createGateway(configOf(declared, ':memory:'), { logLevel: 'silent' });
    onTestFinished(() => gateway.close());
    expect(await gateway.hasKeys()).toBe(expected);
  }
});

test('the key of the environment is changed there, and not in the config, says a refusal', async () => {
  const { admin } = await start({ environment: { key: older } });
  const { body } = await admin('GET', '');
  const refused = await admin('POST', `/${body.data[0].id}/rotate`, {});
  expect(refused.body.error.message).toContain(
    'declared in the environment (TEXTGATE_KEY or TEXTGATE_KEY_FILE)',
  );
});

describe('textgate serve', () => {
  const serve = (environment: Readonly<Record<string, string>>, folder = makeTemporaryFolder()) =>
    serveHere(['serve'], folder, { ...freePorts, ...environment });
  const statusOf = async (url: string, key: string): Promise<number> =>
    (await fetch(`${url}/key`, { headers: { authorization: `Bearer ${key}` } })).status;

  test('takes its first key from TEXTGATE_KEY, and prints none', async () => {
    const server = serve({ TEXTGATE_KEY: older });
    const [, url = ''] = await server.printed(/serves (\S+) /);
    await server.printed(/keys declared: environment\ncreate another key with/);
    expect(await statusOf(url, older)).toBe(200);
    expect(server.output()).not.toMatch(/first key|sk-/);
  });

  test('names the key that it revokes when TEXTGATE_KEY is not set any more, and says how to create one', async () => {
    const folder = makeTemporaryFolder();
    const first = serve({ TEXTGATE_KEY: older }, folder);
    await first.printed(/"level":30,.*"names":\["environment"\],"msg":"declared keys created or changed"/);
    await first.printed(/create another key with/);
    first.signal('SIGTERM');
    await first.finished;
    const second = serve({ TEXTGATE_KEY: '' }, folder);
    await second.printed(
      /"names":\["environment"\],"msg":"keys revoked, because neither the config nor TEXTGATE_KEY/,
    );
    await second.printed(
      /no active key is left, so all requests are refused: .* textgate keys create <name>/,
    );
    await second.printed(/no active key is left; create one with:\s+TEXTGATE_ADMIN_URL=\S+ npm run textgate/);
    expect(second.output()).not.toContain('create another key');
  });

  test('takes its first key from the file of TEXTGATE_KEY_FILE, without the line feed at its end', async () => {
    const folder = makeTemporaryFolder();
    writeFileSync(join(folder, 'key'), `${older}\n`);
    const server = serve({ TEXTGATE_KEY_FILE: join(folder, 'key') }, folder);
    const [, url = ''] = await server.printed(/serves (\S+) /);
    expect(await statusOf(url, older)).toBe(200);
  });

  test.each<[string, Readonly<Record<string, string>>, string]>([
    [
      'short',
      { TEXTGATE_KEY: 'sk-short' },
      'TEXTGATE_KEY: expected 20 characters or more: a shorter key can be guessed',
    ],
    ['guessable', { TEXTGATE_KEY: 'changeme-changeme-changeme' }, 'TEXTGATE_KEY: can be guessed'],
    ['missing', { TEXTGATE_KEY_FILE: '/nowhere/key' }, 'TEXTGATE_KEY_FILE: there is no such file'],
    ['given twice', { TEXTGATE_KEY: older, TEXTGATE_KEY_FILE: '/nowhere/key' }, 'set one of them'],
  ])('does not start with a key that is %s, and does not print it', async (_what, environment, problem) => {
    const { code, stderr } = await serve(environment).finished;
    expect(code).toBe(1);
    expect(stderr).toContain(problem);
    expect(stderr).not.toMatch(/sk-short|changeme|Yq3vT9/);
  });

  test('reads TEXTGATE_KEY_FILE again on SIGHUP, and refuses the old key from then on', async () => {
    const folder = makeTemporaryFolder();
    writeFileSync(join(folder, 'key'), older);
    writeFileSync(
      join(folder, 'textgate.yaml'),
      'upstreams: { demo: { url: "demo:" } }\nmodels: { demo: { routes: [{ upstream: demo, model: demo }], free: true } }\n',
    );
    const server = serveHere(['serve', '--config', 'textgate.yaml'], folder, {
      ...freePorts,
      TEXTGATE_KEY_FILE: 'key',
    });
    const [, url = ''] = await server.printed(/serves (\S+) /);
    expect(await statusOf(url, older)).toBe(200);
    writeFileSync(join(folder, 'key'), other);
    server.signal('SIGHUP');
    await server.printed(/config reloaded/);
    expect([await statusOf(url, older), await statusOf(url, other)]).toEqual([401, 200]);
  });

  test('reads declared keys from the config file, and again when it changes', async () => {
    const folder = makeTemporaryFolder();
    const file = join(folder, 'textgate.yaml');
    const write = (keys: string): void =>
      writeFileSync(
        file,
        `keys: ${keys}\nupstreams: { demo: { url: "demo:" } }\nmodels: { demo: { routes: [{ upstream: demo, model: demo }], free: true } }\n`,
      );
    write('{ bob: { key: "${APP_KEY}" } }');
    const server = serveHere(['serve', '--config', file], folder, {
      ...freePorts,
      APP_KEY: older,
      TEXTGATE_KEY: other,
    });
    const [, url = ''] = await server.printed(/serves (\S+) /);
    await server.printed(/keys declared: bob, environment\n/);
    expect([await statusOf(url, older), await statusOf(url, other)]).toEqual([200, 200]);
    write('{}');
    server.signal('SIGHUP');
    await server.printed(/config reloaded/);
    expect([await statusOf(url, older), await statusOf(url, other)]).toEqual([401, 200]);
  });
});

/** All rows of keys, accounts and earlier secrets. */
function readRows(file: string): unknown {
  const database = new DatabaseSync(file);
  const rows = ['api_keys', 'accounts', 'old_secrets'].map((table) =>
    database.prepare(`SELECT * FROM ${table}`).all(),
  );
  database.close();
  return rows;
}

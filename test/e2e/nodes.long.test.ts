import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { askAdmin } from '../support/admin-client.ts';
import { eventually } from '../support/eventually.ts';
import { holdAnswers } from '../support/held-answers.ts';
import { chatFrames, sayTexts, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';
import { createDatabase, onServer, postgresAbsence } from '../support/test-postgres.ts';
import type { TestDatabase } from '../support/test-postgres.ts';
import { freePort } from '../support/free-port.ts';

/** Where packages have nginx. */
const nginx = ['/usr/sbin/nginx', '/usr/local/sbin/nginx', '/usr/local/bin/nginx'].find((path) =>
  existsSync(path),
);

const body = { model: 'small', messages: [{ role: 'user', content: 'a question' }] };

const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;
describe.skipIf(postgresAbsence !== null)(`two nodes over one database${absent}`, () => {
  let database: TestDatabase;
  let upstream: ScriptedUpstream;
  beforeAll(async () => {
    database = await createDatabase();
    upstream = await startUpstream();
  });
  afterAll(async () => {
    await upstream.close();
    await database.drop();
  });

  /** Two gateways, and a key of both with some limits. */
  async function startNodes(limits: Parameters<TestGateway['gateway']['createKey']>[1] = {}) {
    const options = { upstreamUrl: upstream.url, databaseUrl: database.url };
    const nodes = await Promise.all(
      [0, 1].map(() => startGateway({ ...options, spool: makeTemporaryFolder() })),
    );
    onTestFinished(() => Promise.all(nodes.map((node) => node.close())).then(() => {}));
    const [a, b] = nodes;
    if (a === undefined || b === undefined) throw new Error('there are two');
    const { secret, key } = await a.gateway.createKey('shared', limits);
    const headers = { authorization: `Bearer ${secret}` };
    const ask = (node: TestGateway, more: object = {}): Promise<Response> =>
      node.post('/v1/chat/completions', { ...body, ...more }, { headers });
    return { a, b, ask, keyId: key.id, headers };
  }

  test('grant a key its slots together, and free them for each other', async () => {
    const { a, b, ask } = await startNodes({ concurrency: 2 });
    const answer = holdAnswers(upstream);
    const running = [ask(a), ask(b)];
    await eventually('both run', () => upstream.running === 2);
    for (const node of [a, b]) {
      const refused = await ask(node);
      expect(refused.status).toBe(429);
      expect(await refused.json()).toMatchObject({
        error: { code: 'concurrency_limit_exceeded', limit: { limit: 2, in_flight: 2 } },
      });
    }
    answer();
    for (const response of await Promise.all(running)) expect(response.status).toBe(200);
    expect((await Promise.all([ask(a), ask(a)])).map(({ status }) => status)).toEqual([200, 200]);
  });

  test('count the starts of a key together', async () => {
    const { a, b, ask } = await startNodes({ requestsPerMinute: 3 });
    upstream.play(sayTexts(['Hello', ' there']));
    const statuses: number[] = [];
    for (const node of [a, b, a, b, a]) {
      const response = await ask(node);
      statuses.push(response.status);
      await response.text();
    }
    expect(statuses).toEqual([200, 200, 200, 429, 429]);
  });

  test('have one queue for a key whose requests wait', async () => {
    const { a, b, ask } = await startNodes({ concurrency: 1, queueWaitMs: 60_000 });
    const order: string[] = [];
    const gates = new Map<string, () => void>();
    const say = sayTexts(['Hello', ' there']);
    upstream.play(async (response, request) => {
      const asked = /"content":"(\w+)"/.exec(request.body)?.[1] ?? '';
      order.push(asked);
      await new Promise<void>((resolve) => gates.set(asked, resolve));
      await say(response, request);
    });
    const countWaiting = async (): Promise<unknown> => {
      const [row] = await onServer('SELECT count(*)::int AS waiting FROM waiting_requests', database.url);
      return row?.['waiting'];
    };
    const answers: Promise<Response>[] = [];
    const names = ['first', 'second', 'third'];
    for (const [index, content] of names.entries()) {
      answers.push(ask(index % 2 === 0 ? a : b, { messages: [{ role: 'user', content }] }));
      await eventually(`${content} runs or waits`, async () =>
        index === 0 ? order.length === 1 : (await countWaiting()) === index,
      );
    }
    for (const name of names) {
      await eventually(`${name} is asked`, () => gates.has(name));
      gates.get(name)?.();
    }
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(order).toEqual(names);
  });

  /** Asks the upstream for answers that it gives one by one: `asked` is what it was asked for, in that order. */
  function holdEachAnswer() {
    const asked: string[] = [];
    const gates = new Map<string, () => void>();
    const say = sayTexts(['Hello', ' there']);
    upstream.play(async (response, request) => {
      const content = /"content":"(\w+)"/.exec(request.body)?.[1] ?? '';
      await new Promise<void>((resolve) => {
        gates.set(content, resolve);
        asked.push(content);
      });
      await say(response, request);
    });
    return { asked, answer: (content: string) => gates.get(content)?.() };
  }

  /** The limits of all requests that wait. */
  const waitingWith = async (keyId: string): Promise<readonly unknown[]> =>
    onServer(`SELECT concurrency::int FROM waiting_requests WHERE key_id = '${keyId}'`, database.url);

  test('serve their queue when an operator raises the limit of its key, before any slot is given back', async () => {
    const { a, b, ask, keyId } = await startNodes({ concurrency: 1, queueWaitMs: 600_000 });
    const answer = holdAnswers(upstream);
    const running = [ask(a)];
    await eventually('it runs', () => upstream.running === 1);
    for (const node of [a, b, a]) running.push(ask(node));
    await eventually('three wait', async () => (await waitingWith(keyId)).length === 3);
    expect((await askAdmin(b, 'PATCH', `/keys/${keyId}`, { concurrency: 3 })).status).toBe(200);
    await eventually('two of them run', () => upstream.running === 3);
    expect(await waitingWith(keyId)).toEqual([{ concurrency: 3 }]);
    answer();
    expect((await Promise.all(running)).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  });

  test('hold those that wait to a limit that an operator lowers', async () => {
    const { a, b, ask, keyId } = await startNodes({ concurrency: 2, queueWaitMs: 600_000 });
    const { asked, answer } = holdEachAnswer();
    const askFor = (node: TestGateway, content: string) =>
      ask(node, { messages: [{ role: 'user', content }] });
    const running = [askFor(a, 'first'), askFor(b, 'second')];
    await eventually('both run', () => asked.length === 2);
    const waiting = [askFor(a, 'third'), askFor(b, 'third')];
    await eventually('both wait', async () => (await waitingWith(keyId)).length === 2);
    expect((await askAdmin(a, 'PATCH', `/keys/${keyId}`, { concurrency: 1 })).status).toBe(200);
    await eventually('they have the new limit', async () =>
      (await waitingWith(keyId)).every((row) => (row as { concurrency: number }).concurrency === 1),
    );
    answer('first');
    expect((await running[0])?.status).toBe(200);
    expect(await waitingWith(keyId)).toHaveLength(2);
    answer('second');
    expect((await running[1])?.status).toBe(200);
    for (const [index] of waiting.entries()) {
      await eventually('the next one runs', () => asked.length === index + 3);
      answer('third');
    }
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([200, 200]);
  });

  test('serve the requests that waited on a node whose lease was ended, once it has a new one', async () => {
    const { a, b, ask, keyId } = await startNodes({ concurrency: 1, queueWaitMs: 600_000 });
    const answer = holdAnswers(upstream);
    const running = ask(a);
    await eventually('it runs', () => upstream.running === 1);
    const waiting = [ask(b), ask(b)];
    const ownersInLine = async (): Promise<readonly unknown[]> =>
      (await onServer(`SELECT owner FROM waiting_requests WHERE key_id = '${keyId}'`, database.url)).map(
        ({ owner }) => owner,
      );
    await eventually('both wait', async () => (await ownersInLine()).length === 2);
    const [ended] = await ownersInLine();
    await onServer(`DELETE FROM owners WHERE id = '${String(ended)}'`, database.url);
    await eventually(
      'both wait under the new lease',
      async () => {
        const owners = await ownersInLine();
        return owners.length === 2 && !owners.includes(ended);
      },
      25_000,
    );
    answer();
    expect((await Promise.all([running, ...waiting])).map(({ status }) => status)).toEqual([200, 200, 200]);
  });

  test('change the limit of requests that wait on a node which does nothing itself', async () => {
    const { b, keyId } = await startNodes({ concurrency: 1 });
    for (const sql of [
      `INSERT INTO owners (id, since, renewed_at) VALUES ('still', now_ms(), now_ms())`,
      `INSERT INTO key_limits (key_id, running, waiting) VALUES ('${keyId}', 3, 1)`,
      `INSERT INTO waiting_requests VALUES ('${keyId}', 1, 'waiting', 'still', 5, 60)`,
    ])
      await onServer(sql, database.url);
    expect((await askAdmin(b, 'PATCH', `/keys/${keyId}`, { concurrency: 2 })).status).toBe(200);
    await eventually('it has the new limit', async () => {
      const [row] = await waitingWith(keyId);
      return (row as { concurrency: number } | undefined)?.concurrency === 2;
    });
    for (const table of ['key_limits', 'waiting_requests'])
      await onServer(`DELETE FROM ${table} WHERE key_id = '${keyId}'`, database.url);
  });

  test('cancel the requests of a key for its holder, whichever node runs them, and show so on both', async () => {
    const { a, b, ask, headers } = await startNodes({ concurrency: 1, queueWaitMs: 600_000 });
    const answer = holdAnswers(upstream);
    const cancel = (node: TestGateway, id: string, authorization = headers.authorization) =>
      node.post(`/v1/key/requests/${id}/cancel`, {}, { headers: { authorization } });
    const running = ask(a);
    await eventually('it runs', () => upstream.running === 1);
    const waiting = ask(a);
    let ids: readonly string[] = [];
    await eventually('the other node lists both', async () => {
      const { body: list } = await askAdmin(b, 'GET', '/in-flight');
      ids = (list as { data: readonly { request_id: string }[] }).data.map(({ request_id: id }) => id);
      return ids.length === 2;
    });
    const [first = '', second = ''] = ids;
    expect((await cancel(b, first, `Bearer ${b.key}`)).status).toBe(404);
    for (const [id, request] of [
      [second, waiting],
      [first, running],
    ] as const) {
      const told = await cancel(b, id);
      expect([told.status, await told.json()]).toEqual([200, { request_id: id, cancelled: true }]);
      const cancelled = await request;
      expect([cancelled.status, await cancelled.json()]).toMatchObject([
        499,
        { error: { code: 'request_cancelled' } },
      ]);
      expect((await cancel(b, id)).status).toBe(404);
    }
    for (const node of [a, b]) {
      const shown = await fetch(`${node.url}/v1/key/requests`, { headers });
      expect(await shown.json()).toMatchObject({ data: [{ request_id: first, outcome: 'cancelled' }] });
      expect(await (await fetch(`${node.url}/v1/key`, { headers })).json()).toMatchObject({ in_flight: 0 });
    }
    answer();
  });

  test('show, and cancel, each other’s running requests', async () => {
    const { a, b, ask, keyId } = await startNodes();
    const answer = holdAnswers(upstream);
    const running = ask(a);
    await eventually('it runs', () => upstream.running === 1);
    let shown: Record<string, unknown> = {};
    await eventually('the other node shows it with the name of the first one', async () => {
      const { body: list } = await askAdmin(b, 'GET', '/in-flight');
      [shown = {}] = (list as { data: readonly Record<string, unknown>[] }).data;
      // The record, which has the model, is begun while the upstream is already called.
      return typeof shown['node'] === 'string' && shown['model'] !== null;
    });
    expect(shown).toMatchObject({ key_id: keyId, model: 'small' });
    expect((await askAdmin(b, 'POST', `/in-flight/${String(shown['request_id'])}/cancel`)).status).toBe(200);
    const cancelled = await running;
    expect(cancelled.status).toBe(499);
    answer();
  });

  test('refuse a key that was revoked on another node', async () => {
    const { a, b, ask, keyId } = await startNodes();
    upstream.play(sayTexts(['Hello', ' there']));
    expect((await ask(b)).status).toBe(200);
    await a.gateway.keys.revoke(keyId);
    await eventually('it is refused', async () => (await ask(b)).status === 401);
  });

  test.skipIf(nginx === undefined)(
    'stream through the balancer of the compose file, which passes over a node that is down',
    async () => {
      const { a, b, headers } = await startNodes();
      const text = holdText();
      const port = await startBalancer([a, b]);
      const ask = (): Promise<Response> =>
        fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
          method: 'POST',
          headers: { ...headers, 'content-type': 'application/json' },
          body: JSON.stringify({ ...body, stream: true }),
        });
      const response = await ask();
      const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
      let read = '';
      while (!read.includes('Hello')) read += (await reader?.read())?.value ?? '';
      expect(read).not.toContain('there');
      text.finish();
      for (let piece = await reader?.read(); piece?.done === false; piece = await reader?.read())
        read += piece.value;
      expect(read).toMatch(/there[^]*\[DONE\]/);
      await a.close();
      for (let count = 0; count < 4; count++) expect((await ask()).status).toBe(200);
    },
  );

  test.skipIf(nginx === undefined)(
    'are restarted one right after the other behind the balancer of the compose file, and every request is answered',
    async () => {
      const { a, b, headers } = await startNodes({ concurrency: 100 });
      upstream.play(sayTexts(['Hello', ' there']));
      const port = await startBalancer([a, b]);
      const askAll = async (): Promise<readonly number[]> => {
        const asked = Array.from({ length: 8 }, async () => {
          const response = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
            method: 'POST',
            headers: { ...headers, 'content-type': 'application/json' },
            body: JSON.stringify(body),
          });
          await response.text();
          return response.status;
        });
        return Promise.all(asked);
      };
      const all = Array.from({ length: 8 }, () => 200);
      await a.close();
      // Its connections are refused, and the balancer notices that.
      for (let count = 0; count < 2; count++) expect(await askAll()).toEqual(all);
      const again = await startGateway({
        upstreamUrl: upstream.url,
        databaseUrl: database.url,
        spool: makeTemporaryFolder(),
        server: { port: Number(new URL(a.url).port) },
      });
      onTestFinished(() => again.close());
      await b.close();
      for (let count = 0; count < 2; count++) expect(await askAll()).toEqual(all);
    },
  );

  /** Has the upstream send the rest of its first answer only when it is told to. */
  function holdText(): { finish(): void } {
    const told = Promise.withResolvers<void>();
    upstream.play(async (response) => {
      const [head = '', ...rest] = chatFrames(['Hello', ' there']);
      sendStream(response, [head, rest[0] ?? '']);
      await told.promise;
      response.end(rest.slice(1).join(''));
    });
    onTestFinished(() => told.resolve());
    return { finish: () => told.resolve() };
  }
});

/** Starts nginx with the config of the compose file in front of two gateways; resolves with its port. */
async function startBalancer(nodes: readonly TestGateway[]): Promise<number> {
  const folder = makeTemporaryFolder();
  const port = await freePort();
  const written = readFileSync(join(import.meta.dirname, '../../config/compose/nodes.nginx.conf'), 'utf8');
  const adapted = nodes
    .reduce(
      (config, { url }, index) =>
        config.replace(
          `server gateway-${index + 1}:8080 max_fails=0 resolve;`,
          `server ${new URL(url).host} max_fails=0;`,
        ),
      written,
    )
    .replace('listen 8080;', `listen 127.0.0.1:${port};`)
    .replaceAll('/tmp/', `${folder}/`);
  expect(adapted).not.toContain('gateway-');
  writeFileSync(join(folder, 'nginx.conf'), adapted);
  const args = ['-p', folder, '-c', 'nginx.conf', '-e', 'stderr', '-g', 'daemon off; master_process off;'];
  const child = spawn(nginx ?? '', args, { stdio: ['ignore', 'ignore', 'pipe'] });
  const ended = once(child, 'exit');
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => (errors += String(chunk)));
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  await eventually('the balancer listens', async () => {
    if (child.exitCode !== null) throw new Error(errors);
    return fetch(`http://127.0.0.1:${port}/`).then(
      () => true,
      () => false,
    );
  });
  return port;
}

import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { allEnded, childrenOf } from '../support/served-workers.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { startTextgate } from '../support/textgate-process.ts';
import type { TextgateProcess } from '../support/textgate-process.ts';
import { createDatabase, onServer, postgresAbsence } from '../support/test-postgres.ts';
import type { TestDatabase } from '../support/test-postgres.ts';

/** The time that a test may take, in milliseconds: several processes are started. */
const slow = 90_000;

/** A port that was free a moment ago: one that the system chooses is another one when all workers were gone. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => void server.close(resolve));
  return port;
}

describe.skipIf(postgresAbsence !== null)('the start of two workers', () => {
  let database: TestDatabase;
  let port: number;
  beforeEach(async () => {
    [database, port] = await Promise.all([createDatabase(), freePort()]);
  });
  afterEach(() => database.drop());

  function start(): TextgateProcess {
    const folder = makeTemporaryFolder();
    const config = {
      server: { port, workers: 2 },
      admin: { port: 0 },
      storage: { url: database.url, spool: 'spool' },
      upstreams: { demo: { url: 'demo:' } },
      models: { from: 'demo' },
    };
    writeFileSync(join(folder, 'textgate.yaml'), JSON.stringify(config));
    const server = startTextgate(['serve', '--config', 'textgate.yaml'], folder);
    // Before the database is dropped: the test's own end only kills the primary process.
    onTestFinished(async () => {
      const pids = childrenOf(server.pid ?? 0);
      server.signal('SIGKILL');
      await allEnded(pids);
    });
    return server;
  }

  /** The process id of a worker, once it is there; the first one has the index 0. */
  async function workerAt(server: TextgateProcess, index: number): Promise<number> {
    await eventually('it is started', () => childrenOf(server.pid ?? 0).length > index);
    return childrenOf(server.pid ?? 0)[index] ?? Number.NaN;
  }

  test.each([
    ['the first one is killed before it takes requests', 0, /^/],
    ['the first one is killed while the second one starts', 0, /textgate serves/],
    ['the second one is killed before it takes requests', 1, /textgate serves/],
  ] as const)(
    'goes on when %s: another one replaces it',
    async (_, index, said) => {
      const server = start();
      await server.printed(said);
      if (said.source !== '^') await workerAt(server, 1);
      process.kill(await workerAt(server, index), 'SIGKILL');
      await server.printed(/signal SIGKILL.*worker ended: another one replaces it/);
      await server.printed(/2 workers take requests/);
      const { status } = await fetch(`http://127.0.0.1:${port}/v1/models`);
      expect(status).toBe(401);
      expect(childrenOf(server.pid ?? 0)).toHaveLength(2);
      expect(server.errors().match(/textgate serves/g)).toHaveLength(1);
      expect(server.errors().match(/This is your first key/g)).toHaveLength(1);
    },
    slow,
  );

  test(
    'ends with the reason of a worker that ends by itself, also of one that replaces a killed one',
    async () => {
      const server = start();
      await server.printed(/textgate serves/);
      const second = await workerAt(server, 1);
      process.kill(second, 'SIGSTOP');
      await onServer("UPDATE migrations SET checksum = 'of another version' WHERE number = 1", database.url);
      process.kill(second, 'SIGKILL');
      const { code, stderr } = await server.finished;
      expect(code).toBe(1);
      expect(stderr).toContain('the database was made by a development version of textgate');
    },
    slow,
  );
});

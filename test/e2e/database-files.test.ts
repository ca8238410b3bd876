import { existsSync, readdirSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { sayTexts, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { serveHere } from '../support/serve-here.ts';
import { serveFolder, serveFolderBy } from '../support/served-folder.ts';
import type { ServedFolder } from '../support/served-folder.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { startGateway } from '../support/test-gateway.ts';

/** What a second process says. Where its lines break depends on the length of the folder's name. */
const isInUse = /another\s+textgate\s+process\s+is\s+using\s+it/;

/** How long a test may take in milliseconds: the files are checked every two seconds. */
const patienceMs = 60_000;

let upstream: ScriptedUpstream;
let folder: string;
beforeEach(async () => {
  upstream = await startUpstream();
  upstream.play(sayTexts(['x']));
  folder = makeTemporaryFolder();
});
afterEach(() => upstream.close());

interface PayingKey {
  readonly id: string;
  /** The number of complete answers. */
  readonly answers: () => number;
  /** Resolves when the gateway has stopped answering. */
  readonly ended: Promise<unknown>;
}

/** The pause between two requests, in milliseconds: some are in progress at any time, and the machine is not busy. */
const pauseMs = 40;

/** A key with a balance of 1 USD that sends requests, four at a time, until the gateway stops answering. */
async function startLoad(gateway: ServedFolder): Promise<PayingKey> {
  const { id, key } = await gateway.ask('POST', '/keys', { name: 'payer', balance: '1.00' });
  let answers = 0;
  const line = async (): Promise<void> => {
    for (;;) {
      const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: '{"model":"small","messages":[{"role":"user","content":"x"}]}',
      });
      if (answer.status !== 200) return;
      await answer.text();
      answers++;
      await wait(pauseMs);
    }
  };
  const ended = Promise.allSettled([line(), line(), line(), line()]);
  await eventually('the load runs', () => answers > 20);
  return { id, answers: () => answers, ended };
}

/** Starts the gateway again and asserts that exactly the complete answers are paid for. */
async function expectSettledBooks(load: PayingKey): Promise<void> {
  const next = await serveFolderBy(serveHere, folder, upstream.url);
  const { records } = await next.ask('GET', '/ledger').then(async (found) => {
    expect(found.faults).toEqual([]);
    return found as { records: number };
  });
  expect(records).toBe(load.answers());
  const one = await next.ask('GET', '/records?limit=1');
  const charge = Number(one.data[0].charge);
  const { balance, held, spent } = await next.ask('GET', `/keys/${load.id}`);
  expect(charge).toBeGreaterThan(0);
  expect(Number(spent)).toBeCloseTo(load.answers() * charge, 9);
  expect(Number(balance)).toBeCloseTo(1 - load.answers() * charge, 9);
  expect(held).toBe('0.00');
  next.server.signal('SIGTERM');
  expect((await next.server.finished).code).toBe(0);
}

describe('a running gateway', () => {
  test(
    'ends with an error when its data folder is deleted under load, and the next process has all keys and money',
    async () => {
      const gateway = await serveFolderBy(serveHere, folder, upstream.url);
      const load = await startLoad(gateway);
      rmSync(join(folder, 'data'), { recursive: true });
      const { code, stdout, stderr } = await gateway.server.finished;
      await load.ended;
      expect(code).toBe(1);
      // A look at the files while they are deleted one by one may find the database, and not its log.
      const isDeleted = /the (?:database file|write-ahead log of the database) was deleted/;
      expect(stdout).toMatch(new RegExp(`${isDeleted.source} while it was open`));
      expect(stderr.replaceAll(/\s+/g, ' ')).toMatch(
        new RegExp(`textgate: shutting down: ${isDeleted.source}`),
      );
      await expectSettledBooks(load);
    },
    patienceMs,
  );

  test(
    'keeps a database file that replaced its own under load, and saves its own beside it',
    async () => {
      const gateway = await serveFolderBy(serveHere, folder, upstream.url);
      const load = await startLoad(gateway);
      const data = join(folder, 'data');
      const other = await startGateway({ storage: join(folder, 'other.db') });
      await other.close();
      renameSync(join(folder, 'other.db'), join(data, 'textgate.db'));
      const { code } = await gateway.server.finished;
      await load.ended;
      expect(code).toBe(1);
      const rescued = readdirSync(data).find((name) => name.includes('.rescued-')) ?? '';
      expect(gateway.server.output()).toContain(rescued);
      expect(existsSync(join(data, 'textgate.db-wal'))).toBe(false);
      renameSync(join(data, rescued), join(data, 'textgate.db'));
      await expectSettledBooks(load);
    },
    patienceMs,
  );

  test(
    'is not ready while its lock file is missing, takes the lock again, and excludes a second process',
    async () => {
      const gateway = await serveFolderBy(serveHere, folder, upstream.url);
      rmSync(join(folder, 'data', 'textgate.db-owner'));
      await gateway.server.printed(/the lock file of the database was deleted or replaced/);
      await eventually(
        'it is ready again',
        async () => (await fetch(`${gateway.adminUrl}/readyz`)).status === 200,
      );
      await expect(serveFolder(folder, upstream.url)).rejects.toThrow(isInUse);
    },
    patienceMs,
  );

  test(
    'excludes a second process from its database under every name of the file',
    async () => {
      const gateway = await serveFolderBy(serveHere, folder, upstream.url);
      const load = await startLoad(gateway);
      symlinkSync(join(folder, 'data', 'textgate.db'), join(folder, 'link.db'));
      await expect(serveFolder(folder, upstream.url, 'sqlite:link.db')).rejects.toThrow(isInUse);
      gateway.server.signal('SIGTERM');
      expect((await gateway.server.finished).code).toBe(0);
      await load.ended;
      await expectSettledBooks(load);
    },
    patienceMs,
  );
});

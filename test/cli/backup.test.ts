import type { ServerResponse } from 'node:http';
import { copyFileSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { startAdmin } from '../support/fake-admin.ts';
import { eventually } from '../support/eventually.ts';
import { sayTexts, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { serveHere } from '../support/serve-here.ts';
import { serveFolderBy } from '../support/served-folder.ts';
import type { ServedFolder } from '../support/served-folder.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { runCommand } from '../support/run-command.ts';

/** How long a test may take, in milliseconds: processes start one after another. */
const patienceMs = 120_000;

let upstream: ScriptedUpstream;
let folder: string;
beforeEach(async () => {
  upstream = await startUpstream();
  upstream.play(sayTexts(['x']));
  folder = makeTemporaryFolder();
});
afterEach(() => upstream.close());

/** Runs the command until it exits. */
const run = (args: readonly string[], environment: Readonly<Record<string, string>>) =>
  runCommand(args, folder, environment);

/** Requests one answer; returns its status. */
async function ask({ url }: ServedFolder, key: string): Promise<number> {
  const answer = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: '{"model":"small","messages":[{"role":"user","content":"x"}]}',
  });
  await answer.text();
  return answer.status;
}

describe('textgate backup', () => {
  test(
    'copies a running gateway’s database so that another gateway serves its keys with a balanced ledger',
    async () => {
      const gateway = await serveFolderBy(serveHere, folder, upstream.url);
      const payer = await gateway.ask('POST', '/keys', { name: 'payer', balance: '1.00' });
      const others = await Promise.all(
        ['a', 'b', 'c'].map((name) => gateway.ask('POST', '/keys', { name, balance: '2.00' })),
      );
      const loading = new AbortController();
      const load = async (): Promise<void> => {
        while (!loading.signal.aborted) expect(await ask(gateway, payer.key)).toBe(200);
      };
      const lines = [load(), load(), load()];
      const file = join(folder, 'copy.db');
      const made = await run(['backup', file], gateway.environment);
      loading.abort();
      await Promise.all(lines);
      expect(made).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(/backup complete: \S*copy\.db, \d+ bytes, checked\n/) as string,
      });
      expect(statSync(file).mode & 0o777).toBe(0o600);
      await eventually('no copy is left beside the database', () =>
        readdirSync(join(folder, 'data')).every((name) => !name.includes('copy')),
      );

      const restored = makeTemporaryFolder();
      mkdirSync(join(restored, 'data'));
      copyFileSync(file, join(restored, 'data', 'textgate.db'));
      const next = await serveFolderBy(serveHere, restored, upstream.url);
      const verified = await run(['ledger', 'verify'], next.environment);
      expect(verified).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(/^the ledger balances: 5 accounts, /) as string,
      });
      for (const { key } of [payer, ...others]) expect(await ask(next, key)).toBe(200);
    },
    patienceMs,
  );

  test(
    'replaces an existing file only with --force',
    async () => {
      const gateway = await serveFolderBy(serveHere, folder, upstream.url);
      writeFileSync(join(folder, 'copy.db'), 'mine');
      const refused = await run(['backup', 'copy.db'], gateway.environment);
      expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('--force') as string });
      expect(readFileSync(join(folder, 'copy.db'), 'utf8')).toBe('mine');
      const forced = await run(['backup', 'copy.db', '--force'], gateway.environment);
      expect(forced.code).toBe(0);
      expect(readFileSync(join(folder, 'copy.db'), 'latin1')).toMatch(/^SQLite format 3\0/);
      expect(statSync(join(folder, 'copy.db')).mode & 0o777).toBe(0o600);
    },
    patienceMs,
  );

  test(
    'replaces no file of a gateway’s database, even with --force',
    async () => {
      const gateway = await serveFolderBy(serveHere, folder, upstream.url);
      for (const end of ['', '-wal', '-owner', '-settlements']) {
        const { code, stderr } = await run(
          ['backup', `data/textgate.db${end}`, '--force'],
          gateway.environment,
        );
        expect([code, stderr]).toEqual([1, expect.stringContaining('of a gateway: choose another file')]);
      }
      const { key } = await gateway.ask('POST', '/keys', { name: 'a' });
      expect(await ask(gateway, key)).toBe(200);
    },
    patienceMs,
  );

  test.each([
    [
      'is interrupted',
      (response: ServerResponse) => response.write('SQLite', () => response.destroy()),
      'was interrupted',
    ],
    ['is not a database', (response: ServerResponse) => response.end('x'.repeat(1_000)), 'was damaged'],
    ['is empty', (response: ServerResponse) => response.end(), 'was damaged'],
  ])(
    'leaves no file behind, and the previous backup unchanged, when the copy %s',
    async (_how, answer, said) => {
      const server = await startAdmin((response) => {
        response.writeHead(200);
        answer(response);
      });
      writeFileSync(join(folder, 'copy.db'), 'the one before');
      const { code, stderr } = await run(['backup', 'copy.db', '--force'], server);
      expect(code).toBe(1);
      expect(stderr).toContain(said);
      expect(readdirSync(folder)).toEqual(['copy.db']);
      expect(readFileSync(join(folder, 'copy.db'), 'utf8')).toBe('the one before');
    },
    patienceMs,
  );
});

describe('a long answer of the admin listener', () => {
  test(
    'has no timeout in ledger verify, while other commands give up',
    async () => {
      const timeout = vi.spyOn(AbortSignal, 'timeout').mockImplementation(() => AbortSignal.abort());
      onTestFinished(() => timeout.mockRestore());
      const server = await startAdmin(
        (response) => void response.end('{"accounts":3,"records":7,"faults":[]}'),
      );
      expect(await run(['ledger', 'verify'], server)).toMatchObject({
        code: 0,
        stdout: 'the ledger balances: 3 accounts, 7 records\n',
      });
      expect(await run(['keys', 'list'], server)).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('the gateway does not answer') as string,
      });
    },
    patienceMs,
  );
});

import { execFile, spawnSync } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { startCommanded } from '../support/commanded-gateway.ts';
import type { CommandedGateway } from '../support/commanded-gateway.ts';
import { programFile } from '../support/program.ts';

const run = promisify(execFile);

/** Runs a command that fails; returns its line on standard error. */
async function failing(gateway: CommandedGateway, ...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await gateway.run(...args);
  expect([code, stdout]).toEqual([1, '']);
  return stderr.trimEnd();
}

async function createKey(gateway: CommandedGateway, name: string, ...options: string[]): Promise<string> {
  const { stdout } = await gateway.run('keys', 'create', name, ...options, '--json');
  return (JSON.parse(stdout) as { id: string }).id;
}

describe('a command about a key', () => {
  test('takes the name of a key instead of its id', async () => {
    const gateway = await startCommanded();
    const id = await createKey(gateway, 'bob', '--balance', '1');
    await (await gateway.post()).text();
    const printed = async (...args: readonly string[]): Promise<string> =>
      (await gateway.run(...args)).stdout;

    expect(await printed('keys', 'show', 'bob')).toMatch(new RegExp(`^id +${id}$`, 'm'));
    expect(await printed('keys', 'show', id)).toMatch(/^name +bob$/m);
    expect(await printed('keys', 'credit', 'bob', '2', '--reference', 'r1')).toContain('the balance is 3.00');
    const limits = ['--concurrency', '7', '--tokens-per-minute', '900', '--tokens-per-day', '8000'];
    const shown = ['--usage-cost', 'true', '--charge-comment', 'true'];
    expect(await printed('keys', 'update', 'bob', ...limits, ...shown)).toContain(`${id} is changed`);
    expect(await printed('keys', 'show', 'bob')).toMatch(
      /^tokens per minute +900\ntokens per day +8000\n[^]*^cost in usage +true\ncharge in streams +true$/m,
    );
    expect(await printed('records', '--key', 'bob')).toBe('no records\n');
    expect(await printed('records', '--key', 'test')).toMatch(
      /\n[0-9a-f]{8} +test +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d /,
    );
    expect(await printed('keys', 'rotate', 'bob')).toMatch(/^sk-tg-/);
    expect(await printed('keys', 'revoke', 'bob')).toContain(`${id} is revoked`);
  });

  test('fails for a name that several keys have, and lists their ids', async () => {
    const gateway = await startCommanded();
    const ids = [await createKey(gateway, 'bob'), await createKey(gateway, 'bob')];
    await gateway.run('keys', 'revoke', ids[1] ?? '');
    const line = await failing(gateway, 'keys', 'credit', 'bob', '5', '--reference', 'r1');
    expect(line).toBe(
      `textgate: 2 keys are named bob; give the id of one of them: ${ids[1]} (revoked), ${ids[0]}`,
    );
  });

  test('warns at the creation of a second key of a name, which is then ambiguous', async () => {
    const gateway = await startCommanded();
    expect((await gateway.run('keys', 'create', 'bob')).stderr).not.toContain('are now named');
    const second = await gateway.run('keys', 'create', 'bob');
    expect(second.code).toBe(0);
    expect(second.stderr).toContain('2 keys are now named bob: commands need the id of one of them');
    expect(second.stdout).toMatch(/^sk-tg-/);
  });

  test('names options and arguments, and not fields of the admin API, in what is wrong', async () => {
    const gateway = await startCommanded();
    for (const [args, problem] of [
      [['create', 'x', '--queue-wait', '5 parsecs'], '--queue-wait: expected a duration'],
      [['create', 'x', '--join-retries', '2m'], '--join-retries: expected a duration from 1s to 60s'],
      [['create', 'x', '--expires', 'soon'], '--expires: expected a time'],
      [['create', 'x', '--expires', '2020-01-01'], '--expires: expected a time to come'],
      [['create', 'x', '--model', 'demo*'], '--model: expected the name of one model'],
      [['update', 'test', '--model', 'dem'], "--model: no model has this name; did you mean 'demo'?"],
      [['create', 'x', '--allow-from', 'office'], '--allow-from: expected an IP address or a network'],
      [['create', ''], 'the name: expected a name that is not empty'],
      [['update', 'test', '--model', ''], '--model: expected something'],
      [['rotate', 'test', '--grace', 'x'], '--grace: expected a duration'],
      [['credit', 'test', 'x', '--reference', 'r'], '<usd>: expected USD'],
    ] as const)
      expect(await failing(gateway, 'keys', ...args)).toContain(`textgate: ${problem}`);
  });

  test('keys have a list of addresses, which is shown, and lifted by `all`', async () => {
    const gateway = await startCommanded();
    const id = await createKey(gateway, 'office', '--allow-from', '10.0.0.0/8', '2001:DB8::1');
    const shown = async (): Promise<string> => (await gateway.run('keys', 'show', id)).stdout;
    expect(await shown()).toMatch(/allowed from +10\.0\.0\.0\/8, 2001:db8::1\n/);
    await gateway.run('keys', 'update', 'office', '--allow-from', 'all');
    expect(await shown()).toMatch(/allowed from +all\n/);
  });

  test('keys have a time for retries to join, which is shown, and lifted by `off`', async () => {
    const gateway = await startCommanded();
    const id = await createKey(gateway, 'impatient', '--join-retries', '10s');
    const shown = async (): Promise<string> => (await gateway.run('keys', 'show', id)).stdout;
    expect(await shown()).toMatch(/time for retries +up to 10 s\n/);
    for (const off of ['off', '0s']) {
      await gateway.run('keys', 'update', 'impatient', '--join-retries', off);
      expect(await shown()).toMatch(/time for retries +off\n/);
      await gateway.run('keys', 'update', 'impatient', '--join-retries', '1500ms');
      expect(await shown()).toMatch(/time for retries +up to 1\.5 s\n/);
    }
  });

  test('keys rotate says until when the old secret works', async () => {
    const gateway = await startCommanded();
    const { stderr } = await gateway.run('keys', 'rotate', 'test', '--grace', '1h');
    const [, until = ''] = /the old secret works until (\S+ \S+) UTC/.exec(stderr) ?? [];
    const left = Date.parse(`${until.replace(' ', 'T')}Z`) - Date.now();
    expect(left).toBeGreaterThan(3_000_000);
    expect(left).toBeLessThanOrEqual(3_600_000);
    expect((await gateway.run('keys', 'rotate', 'test')).stderr).not.toContain('old secret');
  });

  test('keys list and records have lines of at most 100 characters, also for long names', async () => {
    const gateway = await startCommanded();
    const long = 'a name of a key that is longer than its column, and would push the others out of sight';
    const { stdout: secret } = await gateway.run('keys', 'create', long, '--balance', '123456.123456789');
    const url = await gateway.ask().then(() => gateway.url);
    const asked = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret.trim()}`, 'content-type': 'application/json' },
      body: '{"model":"demo","messages":[{"role":"user","content":"x"}]}',
    });
    expect(asked.status).toBe(200);
    await asked.text();
    for (const command of [['keys', 'list'], ['records']]) {
      const { stdout } = await gateway.run(...command);
      expect(stdout).toContain('a name of');
      expect(stdout).toContain('…');
      expect(Math.max(...stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(100);
    }
  });

  test('fails for an unknown name or id, with the nearest one', async () => {
    const gateway = await startCommanded();
    const id = await createKey(gateway, 'alice');
    expect(await failing(gateway, 'keys', 'show', 'alcie')).toBe(
      'textgate: no key has the id or name alcie; did you mean alice?',
    );
    expect(await failing(gateway, 'records', '--key', 'zzzzzz')).toBe(
      'textgate: no key has the id or name zzzzzz',
    );
    const misspelt = `${id.slice(0, -1)}${id.endsWith('0') ? '1' : '0'}`;
    expect(await failing(gateway, 'keys', 'revoke', misspelt)).toContain(`did you mean ${id}?`);
  });

  test('keys credit refuses a reference with a blank at its end', async () => {
    const gateway = await startCommanded();
    const line = await failing(gateway, 'keys', 'credit', 'test', '5', '--reference', 'inv-1 ');
    expect(line).toContain('--reference: expected a reference without blanks at its ends: leave them out');
  });

  test('keys credit says why it needs a reference', async () => {
    const gateway = await startCommanded();
    const line = await failing(gateway, 'keys', 'credit', 'test', '5');
    expect(line).toContain('--reference is missing: give the id of the payment');
    expect(line).toContain('booked only once');
  });

  test('keys list sorts by name, balance or what was spent, and lists only what is searched for', async () => {
    const gateway = await startCommanded();
    await createKey(gateway, 'rich', '--balance', '10.5');
    await createKey(gateway, 'poor', '--balance', '9');
    const names = async (...options: readonly string[]): Promise<readonly string[]> =>
      (
        JSON.parse((await gateway.run('keys', 'list', '--json', ...options)).stdout) as {
          name: string;
        }[]
      )
        .map(({ name }) => name)
        .filter((name) => name !== 'first key');
    expect(await names()).toEqual(['poor', 'rich', 'test']);
    expect(await names('--sort', 'name')).toEqual(['poor', 'rich', 'test']);
    expect(await names('--sort', 'balance')).toEqual(['rich', 'poor', 'test']);
    expect(await names('--search', 'OO')).toEqual(['poor']);
    expect(await names('--search', '&limit=1')).toEqual([]);
  });
});

/** `script` of util-linux runs a command on a terminal. */
const hasScript = spawnSync('script', ['--version']).status === 0;

describe('textgate records', () => {
  test.skipIf(!hasScript)('prints 20 rows on a terminal, and says how to see the older ones', async () => {
    const gateway = await startCommanded({ keySettings: { requestsPerMinute: 100, concurrency: 30 } });
    for (const response of await Promise.all(Array.from({ length: 21 }, () => gateway.post())))
      await response.text();
    const onTerminal = async (...options: readonly string[]): Promise<readonly string[]> => {
      const command = [process.execPath, programFile, 'records', ...options].join(' ');
      const env = { ...process.env, ...gateway.adminEnvironment };
      const { stdout } = await run('script', ['-qec', command, '/dev/null'], { env });
      return stdout.trimEnd().split('\r\n');
    };
    const lines = await onTerminal();
    expect(lines).toHaveLength(1 + 20 + 1);
    expect(lines.at(-1)).toBe('older records: --limit 100, or all with --csv or --json');
    expect(await onTerminal('--limit', '21')).toHaveLength(1 + 21);
    expect(await onTerminal('--csv')).toHaveLength(1 + 21);
  });

  test('fails for a model that no record has, with the nearest name', async () => {
    const gateway = await startCommanded();
    await (await gateway.post()).text();
    expect(await failing(gateway, 'records', '--model', 'dmo')).toBe(
      'textgate: no request has the model dmo; did you mean demo?',
    );
    expect(await failing(gateway, 'records', '--model', 'dmo', '--json')).toContain('did you mean demo?');
    expect((await gateway.run('records', '--model', 'demo')).stdout).toMatch(/\n[0-9a-f]{8} /);
    expect((await gateway.run('records', '--model', 'demo', '--to', '2020-01-01')).stdout).toBe(
      'no records\n',
    );
  });

  test('prints all records into a pipe, and refuses a limit that is no whole number', async () => {
    const gateway = await startCommanded({ keySettings: { requestsPerMinute: 100, concurrency: 30 } });
    for (const response of await Promise.all(Array.from({ length: 23 }, () => gateway.post())))
      await response.text();
    const linesOf = async (...options: readonly string[]): Promise<number> =>
      (await gateway.run('records', ...options)).stdout.trimEnd().split('\n').length;
    expect(await linesOf()).toBe(24);
    expect(await linesOf('--limit', '5')).toBe(6);
    expect(await linesOf('--csv')).toBe(24);
    expect(await failing(gateway, 'records', '--limit', '1.5')).toContain('whole number of 1 or more');
  });
});

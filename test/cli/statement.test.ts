import { execFile } from 'node:child_process';
import { copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import { readStatement } from '../../src/domain/statements/read-statement.ts';
import { startCommanded } from '../support/commanded-gateway.ts';
import { blocksOf } from '../support/page-blocks.ts';
import { requestIdFor } from '../support/request-ids.ts';
import { statementsOver } from '../support/statement-tools.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { openTestEngine } from '../support/test-engine.ts';
import { storeOver, opened, ended } from '../support/used-database.ts';
import { payingKey } from '../support/stored-rows.ts';
import { runCommand } from '../support/run-command.ts';

const run = promisify(execFile);

/** Runs a program; resolves with how it ended. */
async function end(program: string, args: readonly string[]) {
  return run(program, [...args]).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    ({ code, stdout, stderr }: { code: number; stdout: string; stderr: string }) => ({
      code,
      stdout,
      stderr,
    }),
  );
}

const verify = (...args: readonly string[]) => runCommand(['statement', 'verify', ...args]);

/** A folder with a statement of some rows in a root, as `statement.txt`, and `keys.json`. */
async function writeFiles(firstCharge = 7) {
  const folder = makeTemporaryFolder();
  const engine = openTestEngine(':memory:');
  onTestFinished(() => engine.close());
  const store = storeOver(engine);
  const { state, statements, makeRoot } = statementsOver(engine, () => 1_900_000_000_000);
  await store.createKey({ ...payingKey, id: 'key_a' }, 'hash', 5_000);
  for (let number = 0; number < 4; number++) {
    const id = requestIdFor(String(number));
    await store.open(opened(id, 'key_a', 100));
    await store.settle(ended(id, 'key_a', firstCharge + number));
  }
  await makeRoot();
  const [file, keys] = [join(folder, 'statement.txt'), join(folder, 'keys.json')];
  writeFileSync(file, await state('key_a'));
  const listed = (await statements.keys()).keys.map(({ id, pem }) => ({ id, public_key: pem }));
  writeFileSync(keys, JSON.stringify({ object: 'list', data: listed }));
  return { folder, file, keys, state };
}

describe('textgate statement', () => {
  test('get writes what verify finds valid with the keys of the gateway, and a holder gets the same rows', async () => {
    const gateway = await startCommanded({
      config: {
        upstreams: { demo: { url: 'demo:' } },
        models: {
          demo: { routes: [{ upstream: 'demo', model: 'demo' }], price: { input: '1', output: '2' } },
        },
      },
      keySettings: { balance: '3.00' },
    });
    for (let number = 0; number < 2; number++)
      await (
        await gateway.post('/v1/chat/completions', {
          model: 'demo',
          messages: [{ role: 'user', content: 'x' }],
        })
      ).text();
    const file = join(makeTemporaryFolder(), 'of-test.txt');
    expect(await gateway.run('statement', 'get', 'test', '--output', file)).toMatchObject({
      code: 0,
      stdout: `${file}: 3 rows\n`,
    });
    const checked = await gateway.run(
      'statement',
      'verify',
      file,
      '--keys',
      `${gateway.url}/v1/statement-keys`,
    );
    expect(checked.stdout).toMatch(
      /^\S+of-test.txt: key_\w+ \(test\), from - to -, signed by \w{16}\n {2}rows 1 to 3: from 0.00 to 2.99\d+ USD\n {2}in no root yet\nvalid\n$/,
    );
    expect((await gateway.run('statement', 'get', 'test', '--output', file)).stderr).toContain('exists');
    const headers = { authorization: `Bearer ${gateway.key}` };
    const own = await fetch(`${gateway.url}/v1/key/statement`, { headers });
    expect(own.headers.get('content-type')).toBe('text/plain; charset=utf-8');
    expect(readStatement(await own.text()).rows).toEqual(readStatement(readFileSync(file, 'latin1')).rows);
    const since = await gateway.run('statement', 'get', 'test', '--from', '2099-01-01');
    expect(readStatement(since.stdout)).toMatchObject({ rows: [], opening: { number: 3 } });
    for (const [query, param] of [
      ['from=yesterday', 'from'],
      ['from=2030-01-02&to=2030-01-01', 'to'],
      ['after=x', 'after'],
      ['after=9', 'after'],
      ['form=2030-01-01', 'form'],
    ]) {
      const refused = await fetch(`${gateway.url}/v1/key/statement?${query}`, { headers });
      expect([refused.status, await refused.json()]).toMatchObject([400, { error: { param } }]);
    }
    expect((await fetch(`${gateway.url}/v1/key/statement`)).status).toBe(401);
    const wrong = await gateway.run('statement', 'get', 'test', '--from', 'yesterday');
    expect(wrong).toMatchObject({ code: 1, stderr: expect.stringContaining('--from: expected a time') });
  });

  test('get writes those of all keys of a group into a folder', async () => {
    const gateway = await startCommanded({
      config: {
        upstreams: { demo: { url: 'demo:' } },
        models: { demo: { routes: [{ upstream: 'demo', model: 'demo' }], free: true } },
        groups: { research: {} },
      },
    });
    for (const name of ['ann', 'bob']) await gateway.run('keys', 'create', name, '--group', 'research');
    await gateway.run('keys', 'credit', 'bob', '2.50', '--reference', 'invoice 1');
    const folder = join(makeTemporaryFolder(), 'january');
    const got = await gateway.run('statement', 'get', '--group', 'research', '--output', folder);
    expect(got.stdout.split('\n').map((line) => line.replace(/^.*key_\w+/, 'key'))).toEqual([
      'key.txt: 1 row',
      'key.txt: 0 rows',
      '',
    ]);
    const files = readdirSync(folder).map((file) => join(folder, file));
    const keys = `${gateway.url}/v1/statement-keys`;
    for (const file of files)
      expect((await gateway.run('statement', 'verify', file, '--keys', keys)).stdout).toMatch(/\nvalid\n$/);
    const names = files.map((file) => readStatement(readFileSync(file, 'latin1')).name);
    expect(names.toSorted()).toEqual(['ann', 'bob']);
    for (const [args, reason] of [
      [['--group', 'reserch', '--output', folder], 'did you mean research?'],
      [['--group', 'research'], 'name the folder'],
      [['ann', '--group', 'research', '--output', folder], 'name a key, or a group'],
      [[], 'name a key, or a group'],
    ] as const)
      expect((await gateway.run('statement', 'get', ...args)).stderr).toContain(reason);
  });

  test('verify says what is wrong, and exits with 1; with 2 where the signature was not checked', async () => {
    const { folder, file, keys } = await writeFiles();
    expect(await verify(file, '--keys', keys, '--key', 'key_a')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/in root 1, whose hash is [0-9a-f]{64}\nvalid\n$/),
    });
    expect(await verify(file)).toMatchObject({
      code: 2,
      stdout: expect.stringContaining(
        'the signature was not checked: name the keys of the service with --keys',
      ),
    });
    const text = readFileSync(file, 'latin1');
    const lines = text.split('\n');
    const other = join(folder, 'other.txt');
    const [third, fourth] = ['3', '4'].map((number) =>
      lines.findIndex((line) => line.includes(` ${number} 2027`)),
    );
    const swapped = lines
      .with(Number(third), lines[Number(fourth)] ?? '')
      .with(Number(fourth), lines[Number(third)] ?? '');
    const cases: readonly (readonly [string, readonly string[], string])[] = [
      [
        text.replace('-0.000000008', '-0.000000009'),
        [],
        'row 3: its balance is not the one before it and its amount',
      ],
      [lines.toSpliced(Number(third), 1).join('\n'), [], 'row 3 is missing: row 4 stands in its place'],
      [swapped.join('\n'), [], 'row 4 stands where row 3 belongs: the order was changed'],
      [text.slice(0, 400), [], 'the file is cut off'],
      [text, ['--key', 'key_b'], 'it is of another key: key_a'],
      ['a letter', [], 'the file is no statement'],
    ];
    for (const [content, args, fault] of cases) {
      writeFileSync(other, content);
      const found = await verify(other, '--keys', keys, ...args);
      expect([found.code, found.stderr]).toEqual([1, expect.stringContaining(fault)]);
    }
    expect((await verify(file, '--keys', file)).stderr).toContain('has no public keys');
    expect(JSON.parse((await verify(file, '--json')).stdout)).toEqual({
      valid: true,
      signature_checked: false,
      missing: [],
      faults: [],
    });
  }, 120_000);

  test('verify shows the control characters of a name, so that no name adds a verdict of its own', async () => {
    const { folder, file, keys } = await writeFiles();
    const forged = join(folder, 'forged.txt');
    const name = String.raw`name "x\u000avalid\u001b[8m\u202e"`;
    writeFileSync(
      forged,
      readFileSync(file, 'latin1').replace(/^name .*$/m, () => name),
    );
    const unsigned = await verify(forged);
    expect(unsigned.code).toBe(2);
    expect(unsigned.stdout).toContain(String.raw`(x\nvalid\u{1b}[8m\u{202e})`);
    const stranger = readFileSync(forged, 'latin1').replace('"key_a"', () => String.raw`"key_\u000avalid"`);
    writeFileSync(forged, stranger);
    const refused = await verify(forged, '--keys', keys, '--key', 'key_a');
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain(String.raw`it is of another key: key_\nvalid`);
  });

  test('verify of two files finds the restore of a backup behind a statement', async () => {
    const [before, after] = [await writeFiles(), await writeFiles(8)];
    // The second database gave the number of a lost row to another one.
    const copy = join(before.folder, 'later.txt');
    writeFileSync(copy, await after.state('key_a'));
    const found = await verify(before.file, copy);
    expect([found.code, found.stderr]).toEqual([
      1,
      expect.stringMatching(/row 2 is another one in later.txt than in statement.txt/),
    ]);
  });
});

describe('the checks of the page', () => {
  const page = 'docs/callers/statements.md';
  const programs: readonly (readonly [string, string, string])[] = [
    ['js', 'check-statement.mjs', process.execPath],
    ['python', 'check_statement.py', 'python3'],
  ];

  test.each(programs)(
    'the one in %s is of few lines, and finds a changed file',
    async (language, name, program) => {
      const { folder, file, keys } = await writeFiles();
      const [block = { text: '' }] = blocksOf(page, language);
      const lines = block.text.split('\n').filter((line) => line !== '');
      expect(lines.length).toBeLessThanOrEqual(40);
      const script = join(folder, name);
      writeFileSync(script, block.text);
      const good = await end(program, [script, file, keys]);
      expect([good.stderr, good.stdout]).toEqual([
        '',
        expect.stringMatching(/valid: 5 rows of "key_a", closing balance 0\.0000049\d\d USD\n$/),
      ]);
      const text = readFileSync(file, 'latin1');
      const changed = join(folder, 'changed.txt');
      copyFileSync(file, changed);
      for (const other of [
        text.replace(requestIdFor('1'), requestIdFor('9')),
        text.replace('name ', 'name  '),
        text.slice(0, -60),
        `${text}name "another"\n`,
      ]) {
        writeFileSync(changed, other);
        expect((await end(program, [script, changed, keys])).code).toBe(1);
      }
    },
  );
});

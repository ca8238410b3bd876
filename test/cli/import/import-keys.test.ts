import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { importOf, keyRow, notesOf } from '../../../src/cli/import/keys/read-row.ts';
import { askAdmin } from '../../support/admin-client.ts';
import { runCommand } from '../../support/run-command.ts';
import { makeTemporaryFolder } from '../../support/temporary-folder.ts';
import { startGateway } from '../../support/test-gateway.ts';
import type { TestGateway } from '../../support/test-gateway.ts';

/** A key in the form of LiteLLM's, and its hash as it is in the column `token`. */
const secretOf = (name: string): string =>
  `sk-${createHash('sha256').update(name).digest('base64url').slice(0, 22)}`;
const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex');
const tokenOf = (name: string): string => hashOf(secretOf(name));

let folder: string;
beforeEach(() => {
  folder = makeTemporaryFolder();
});

const start = async (importedKeys = true): Promise<TestGateway> => {
  const gateway = await startGateway({
    server: { importedKeys },
    otherModel: 'large model',
    price: { input: '1', output: '1' },
  });
  onTestFinished(() => gateway.close());
  return gateway;
};
const run = ({ adminUrl, adminToken }: TestGateway, text: string, ...more: readonly string[]) => {
  writeFileSync(join(folder, 'keys.csv'), text);
  return runCommand(['import', 'litellm', '--keys', 'keys.csv', ...more], folder, {
    TEXTGATE_ADMIN_URL: adminUrl,
    TEXTGATE_ADMIN_TOKEN: adminToken,
  });
};
const statusOf = async (gateway: TestGateway, name: string): Promise<number> => {
  const headers = { authorization: `Bearer ${secretOf(name)}` };
  const answer = await fetch(`${gateway.url}/v1/models`, { headers });
  await answer.text();
  return answer.status;
};
const keysOf = async (gateway: TestGateway) =>
  (await askAdmin(gateway, 'GET', '/keys')).body.data as readonly Record<string, unknown>[];
const keyOf = async (gateway: TestGateway, name: string) =>
  (await keysOf(gateway)).find((key) => key['name'] === name);
const withoutIds = (text: string): string => text.replaceAll(/key_[A-Za-z0-9]{12}/g, 'key_…');

const columns = [
  'token',
  'key_alias',
  'key_name',
  'team_id',
  'spend',
  'max_budget',
  'budget_duration',
  'models',
  'expires',
  'rpm_limit',
  'tpm_limit',
  'max_parallel_requests',
  'blocked',
  'allowed_routes',
];
const header = columns.join(',');
/** The cells of a row by their columns; all others are empty. */
const cellsOf = (
  name: string,
  cells: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> => ({
  ...Object.fromEntries(columns.map((column) => [column, ''])),
  token: tokenOf(name),
  key_alias: name,
  ...cells,
});
const rowOf = (name: string, cells: Readonly<Record<string, string>> = {}): string =>
  Object.values(cellsOf(name, cells)).join(',');

/** A file as psql writes it, with all that may be in one. */
const file = [
  header,
  `${tokenOf('ann')},ann,sk-...aaaa,,12.345678901234567,100,,{},,,,,,{llm_api_routes}`,
  `${tokenOf('bob')},"bob, ""the"" builder",sk-...bbbb,team-1,1e-05,20.5,30d,"{small,""large model""}",2100-01-31 12:00:00.5,60,100000,4,f,{}`,
  `${tokenOf('carol')},,sk-...cccc,,0,,,{all-proxy-models},,,,,,"{/key/info,/v1/chat/completions}"`,
  `${tokenOf('dan')},dan,sk-...dddd,,0,,,{},,,,,t,`,
  `${tokenOf('eve')},eve,sk-...eeee,,0,,,{},2020-01-31 12:00:00,,,,,`,
  `${tokenOf('fay')},fay,sk-...ffff,,0,5,14d,{},,,,,,`,
  `${tokenOf('gus')},gus,sk-...gggg,,0,,,{smal},,,,,,`,
  `${secretOf('hal')},${secretOf('hal')},,,0,,,{},,,,,,`,
  `${tokenOf('ann')},ann again,,,0,,,{},,,,,,`,
  `${tokenOf('ida')},ida,sk-...iiii,,0,,,{},,,,,,{management_routes}`,
].join('\n');

const results = (how: string) => [
  `line 2: ann: ${how}`,
  `line 3: bob, "the" builder: ${how} (0.00001 USD of its month are spent there, and do not count here; the limits of its team are not taken over)`,
  `line 4: sk-...cccc: ${how}`,
  'line 5: dan: left out, as it is blocked there',
  'line 6: eve: left out, as it has expired',
  'line 7: not taken: budget_duration: expected one of 1d, 24h, daily, 7d, 1w, weekly, 30d, 1mo, monthly: a budget is per day, week or month of the calendar',
  "line 8: not taken: models: no model has this name; did you mean 'small'?",
  'line 9: not taken: token: a key stands in place of its hash; the file was written by something else than the documented command',
  'line 10: left out, as it is the key of line 2',
  'line 11: ida: left out, as it may call no model there',
];

describe('textgate import litellm --keys', () => {
  test('imports each row that can be taken, with its settings, and names all others by their lines', async () => {
    const gateway = await start();
    const dry = await run(gateway, file, '--dry-run');
    expect(dry).toMatchObject({ code: 1, stderr: '' });
    expect(dry.stdout.split('\n')).toEqual([
      ...results('can be imported'),
      '10 rows: 3 imported, 0 here already, 4 left out, 3 not taken; nothing is stored',
      '',
    ]);
    expect(await keysOf(gateway)).toHaveLength(1);
    expect(await statusOf(gateway, 'ann')).toBe(401);

    const { code, stdout, stderr } = await run(gateway, file);
    expect([code, stderr]).toEqual([1, '']);
    expect(withoutIds(stdout).split('\n')).toEqual([
      ...results('imported as key_…'),
      '10 rows: 3 imported, 0 here already, 4 left out, 3 not taken',
      '',
    ]);
    expect(stdout).not.toContain(secretOf('hal'));
    const statuses = await Promise.all(
      ['ann', 'bob', 'carol', 'dan', 'fay', 'hal'].map((name) => statusOf(gateway, name)),
    );
    expect(statuses).toEqual([200, 200, 200, 401, 401, 401]);
    expect(await keyOf(gateway, 'ann')).toMatchObject({
      balance: '87.654321098',
      budget: null,
      models: null,
      expires_at: null,
    });
    expect(await keyOf(gateway, 'bob, "the" builder')).toMatchObject({
      balance: null,
      budget: { amount: '20.50', per: 'month', time_zone: 'UTC', spent: '0.00' },
      models: ['small', 'large model'],
      expires_at: '2100-01-31T12:00:00.500Z',
      limits: { concurrency: 4, requests_per_minute: 60, tokens_per_minute: 100_000 },
    });
    expect(await keyOf(gateway, 'sk-...cccc')).toMatchObject({ balance: null, budget: null, models: null });
  });

  test('changes nothing when it runs again, also of keys that were changed, revoked or rotated since', async () => {
    const gateway = await start();
    const rows = [header, ...['ann', 'bob', 'carol'].map((name) => rowOf(name))].join('\n');
    expect((await run(gateway, rows)).stdout).toContain('3 rows: 3 imported, 0 here already');
    const [ann, bob, carol] = await Promise.all(['ann', 'bob', 'carol'].map((name) => keyOf(gateway, name)));
    await askAdmin(gateway, 'PATCH', `/keys/${String(ann?.['id'])}`, { name: 'renamed', models: ['small'] });
    await askAdmin(gateway, 'DELETE', `/keys/${String(bob?.['id'])}`);
    await askAdmin(gateway, 'POST', `/keys/${String(carol?.['id'])}/rotate`, {});
    const before = await keysOf(gateway);
    for (const more of [[], ['--dry-run']]) {
      const { code, stdout } = await run(gateway, rows, ...more);
      expect(code).not.toBe(1);
      expect(stdout).toContain(`line 2: ann: here already as ${String(ann?.['id'])}\n`);
      expect(stdout).toContain('3 rows: 0 imported, 3 here already');
    }
    expect(await keysOf(gateway)).toEqual(before);
  });

  test('reads a file of Windows, with a byte order mark', async () => {
    const gateway = await start();
    const { stdout } = await run(gateway, `\ufeff${header}\r\n${rowOf('ann')}\r\n\r\n`);
    expect(withoutIds(stdout)).toBe(
      'line 2: ann: imported as key_…\n1 row: 1 imported, 0 here already, 0 left out, 0 not taken\n',
    );
  });

  test('takes no name with what is not seen in it', async () => {
    const gateway = await start();
    const rows = [header, rowOf('bob '), rowOf('\u202ebob')].join('\n');
    expect((await run(gateway, rows)).stdout).toBe(
      [
        'line 2: not taken: key_alias: expected a name without blanks at its ends: leave them out.',
        'line 3: not taken: key_alias: expected a name without control characters, direction marks and zero-width characters.',
        '2 rows: 0 imported, 0 here already, 0 left out, 2 not taken',
        '',
      ].join('\n'),
    );
  });

  test('makes a key that has spent all of it one with a balance of 0', async () => {
    const gateway = await start();
    await run(
      gateway,
      `${header}\n${rowOf('ann', { key_alias: 'helpdesk-production', spend: '7.5', max_budget: '5' })}\n`,
    );
    expect(await keyOf(gateway, 'helpdesk-production')).toMatchObject({ balance: '0.00' });
  });

  test('imports nothing where the config takes no imported keys, and says what to set', async () => {
    const { code, stdout, stderr } = await run(await start(false), file);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toContain('set server.importedKeys to true');
  });

  test.for([
    ['no header', `${rowOf('ann')}\n`, 'the first line has no column token'],
    [
      'plain keys and no header',
      `${secretOf('ann')},${secretOf('ann')}\n`,
      'line 1: columns 1 and 2 have the same name',
    ],
    [
      'a header without a limit',
      `${header.replace('max_budget', 'budget')}\n${rowOf('ann')}\n`,
      'the first line has no column max_budget',
    ],
    ['no row', '', 'the file is empty'],
    ['JSON', `[{"token":"${tokenOf('ann')}"}]`, 'the first line has no column token'],
    [
      'a quote that is not closed',
      `${header}\n${rowOf('ann')}\n${rowOf('bob', { key_alias: '"bob' })}\n`,
      'a quoted cell is not closed',
    ],
    [
      'a row of another length',
      `${header}\n${rowOf('ann')}\n${secretOf('bob')}\n`,
      'line 3: 1 cells, where the header has 14',
    ],
  ])('imports nothing of a file with %s', async ([, text = '', fault = '']) => {
    const gateway = await start();
    const { code, stdout, stderr } = await run(gateway, text);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toContain(`keys.csv: `);
    expect(stderr).toContain(fault);
    expect(stderr).not.toMatch(/sk-\w/);
    expect(await keysOf(gateway)).toHaveLength(1);
  });

  test('names the column of a cell that can not be taken, and quotes none', async () => {
    const gateway = await start();
    const wrong: readonly (readonly [string, string, string])[] = [
      ['max_budget', '-1', 'expected an amount of USD'],
      ['max_budget', 'Infinity', 'expected an amount of USD'],
      ['max_budget', '1e+20', 'expected at most 9007199 USD'],
      ['spend', 'NaN', 'expected an amount of USD'],
      ['budget_duration', '2mo', 'expected one of 1d'],
      ['models', 'small', 'expected names of models'],
      ['models', '{all-team-models}', 'none for those of a team'],
      ['models', '{small*}', 'patterns with * are not read here'],
      ['expires', 'tomorrow', 'expected a time'],
      ['rpm_limit', '1.5', 'expected a whole number'],
      ['rpm_limit', '0', '1'],
      ['tpm_limit', '2147483648', '2147483647'],
      ['max_parallel_requests', secretOf('hal'), 'expected a whole number'],
      ['blocked', 'constructor', 'expected t or f'],
      ['allowed_routes', '/v1', 'expected names of routes'],
      ['key_alias', 'x'.repeat(101), '100'],
      ['key_alias', secretOf('hal'), 'a key stands in its place'],
    ];
    for (const [column, value, problem] of wrong) {
      const { code, stdout } = await run(gateway, `${header}\n${rowOf('ann', { [column]: value })}\n`);
      expect([column, code]).toEqual([column, 1]);
      expect(stdout).toMatch(new RegExp(`^line 2: not taken: ${column}: .*`));
      expect(stdout).toContain(problem);
      expect(stdout).not.toContain(secretOf('hal'));
    }
    expect(await keysOf(gateway)).toHaveLength(1);
  });
});

describe('amounts', () => {
  const read = (cells: Readonly<Record<string, string>>) => keyRow.parse(cellsOf('ann', cells));

  test('of any decimal text give no key more than it had left, and less by two billionths at most', () => {
    const amount = fc
      .tuple(fc.nat(9_000_000), fc.stringMatching(/^\d{0,25}$/))
      .map(([whole, fraction]) => `${whole}${fraction === '' ? '' : `.${fraction}`}`);
    const scale = 10n ** 25n;
    const exactly = (text: string): bigint => {
      const [whole = '', fraction = ''] = text.split('.');
      return BigInt(whole) * scale + BigInt(fraction.padEnd(25, '0'));
    };
    fc.assert(
      fc.property(amount, amount, (most, spent) => {
        const { balance = '' } = importOf(read({ max_budget: most, spend: spent }), 'ann') as {
          balance?: string;
        };
        const left = exactly(most) - exactly(spent);
        const lost = (left < 0n ? 0n : left) - exactly(balance);
        expect(lost >= 0n && lost < 2n * 10n ** 16n).toBe(true);
      }),
    );
  });

  test('are read as PostgreSQL writes them', () => {
    const balanceOf = (most: string): unknown =>
      (importOf(read({ max_budget: most }), 'ann') as { balance: string }).balance;
    expect(['1e-05', '0.1', '1e+06', '20', '33.333333333333336'].map(balanceOf)).toEqual([
      '0.00001',
      '0.10',
      '1000000.00',
      '20.00',
      '33.333333333',
    ]);
    expect(notesOf(read({ max_budget: '1', budget_duration: '7d', spend: '1e-10' }))).toContain(
      '0.000000001 USD of its week',
    );
  });

  test.for([
    ['{small,"large model"}', ['small', 'large model']],
    ['{"a\\"b","c\\\\d","e,f","{}"}', ['a"b', 'c\\d', 'e,f', '{}']],
    ['{}', null],
    ['{small,all-proxy-models}', null],
    ['', null],
  ] as const)('models are read as PostgreSQL writes them: %s', ([text, models]) => {
    expect(importOf(read({ models: text }), 'ann')).toMatchObject({ models });
  });
});

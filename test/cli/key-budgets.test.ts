import { expect, test } from 'vitest';
import { startCommanded } from '../support/commanded-gateway.ts';

test('the budget of a key is set, shown, raised and removed by commands', async () => {
  const gateway = await startCommanded();
  const run = async (...args: readonly string[]): Promise<string> => {
    const { stdout, stderr } = await gateway.run('keys', ...args);
    return stdout + stderr;
  };
  await run(
    'create',
    'bob',
    '--budget',
    '20/month',
    '--time-zone',
    'Europe/Berlin',
    '--warn-at',
    '0.5',
    '0.8',
  );
  const first = await run('show', 'bob');
  expect(first).toMatch(/^budget +20\.00 per month \(Europe\/Berlin\)$/m);
  expect(first).toMatch(
    /^left in this period +20\.00, 0\.00 are spent; full again at \d{4}-\d\d-\d\dT2[23]:00:00\.000Z$/m,
  );

  await run('update', 'bob', '--raise', '5', '--raise-until', '2100-01-01');
  expect(await run('show', 'bob')).toMatch(/^budget raised by +5\.00 until 2100-01-01T00:00:00\.000Z$/m);
  await run('update', 'bob', '--raise', '5', '--raise-until', '2020-01-01');
  expect(await run('show', 'bob')).toMatch(
    /^budget raise +none: that of 5\.00 ended at 2020-01-01T00:00:00\.000Z$/m,
  );
  await run('update', 'bob', '--raise', 'none', '--warn-at', 'none', '--budget', '3/day');
  expect(JSON.parse(await run('show', 'bob', '--json'))).toMatchObject({
    budget: { amount: '3.00', per: 'day', time_zone: 'Europe/Berlin', raise: null, warn_at: [] },
  });
  await run('update', 'bob', '--budget', 'none');
  expect(await run('show', 'bob')).toMatch(/^budget +none set$/m);

  expect(await run('update', 'bob', '--budget', '20')).toContain('--budget: expected an amount and a period');
  expect(await run('update', 'bob', '--budget', '20/year')).toContain('--budget: ');
  expect(await run('update', 'bob', '--time-zone', 'Mars')).toContain('--time-zone: expected a time zone');
  expect(await run('update', 'bob', '--raise', '5')).toContain(
    '--raise and --raise-until are given together',
  );
  expect(await run('update', 'bob', '--raise', '5', '--raise-until', '2100-01-01')).toContain(
    'This key has no budget yet',
  );
});

test('settings of a budget without a budget are refused with the option that is missing, and nothing changes', async () => {
  const gateway = await startCommanded();
  const run = async (...args: readonly string[]) => gateway.run('keys', ...args);
  for (const setting of [
    ['--time-zone', 'UTC'],
    ['--warn-at', '0.5'],
    ['--raise', '5', '--raise-until', '2100-01-01'],
  ]) {
    const made = await run('create', 'ann', ...setting);
    expect([made.stdout, made.stderr]).toEqual([
      '',
      expect.stringContaining(
        '--budget is missing: --time-zone, --warn-at and --raise belong to one, such as --budget 20/month',
      ),
    ]);
  }
  expect((await run('list')).stdout).not.toContain('ann');

  await run('create', 'bob', '--budget', '20/month');
  const raised = await run(
    'update',
    'bob',
    '--budget',
    'none',
    '--raise',
    '5',
    '--raise-until',
    '2100-01-01',
  );
  expect(raised.stderr).toContain('--budget none takes the budget away: leave out --time-zone');
  expect((await run('show', 'bob')).stdout).toMatch(/^budget +20\.00 per month/m);
});

test('a key can be created with `none` where one is changed with it: without a budget, a raise and a group', async () => {
  const gateway = await startCommanded();
  const run = async (...args: readonly string[]) => (await gateway.run('keys', ...args)).stderr;
  expect(await run('create', 'ann', '--budget', 'none', '--group', 'none')).toContain('key id: ');
  expect(await run('create', 'bob', '--budget', '3/day', '--raise', 'none')).toContain('key id: ');
  const { stdout } = await gateway.run('keys', 'show', 'bob', '--json');
  expect(JSON.parse(stdout)).toMatchObject({ budget: { amount: '3.00', raise: null } });
});

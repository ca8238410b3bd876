import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../../src/composition/clock.ts';
import { showGroups } from '../../src/cli/keys/groups.ts';
import type { ConfigInput } from '../../src/index.ts';
import { listKeys, showKey } from '../../src/cli/keys/keys.ts';
import { startCommanded } from '../support/commanded-gateway.ts';
import { sayTexts, startUpstream } from '../support/scripted-upstream.ts';
import { runCommand } from '../support/run-command.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';

const columns = (text: string) => text.split('\n').map((line) => line.trim().split(/\s{2,}/));

describe('commands about groups', () => {
  let gateway: TestGateway;
  beforeEach(async () => {
    gateway = await startGateway({ groups: { research: { concurrency: 8 } } });
    vi.stubEnv('TEXTGATE_ADMIN_URL', gateway.adminUrl);
    vi.stubEnv('TEXTGATE_ADMIN_TOKEN', gateway.adminToken);
  });
  afterEach(async () => {
    vi.unstubAllEnvs();
    await gateway.close();
  });

  test('say what to do where the config has none', async () => {
    const other = await startGateway();
    vi.stubEnv('TEXTGATE_ADMIN_URL', other.adminUrl);
    expect(await showGroups({})).toBe(
      'the config has no groups: add them as `groups`, and give keys one by --group',
    );
    expect(await showGroups({ json: true })).toBe('[]');
    await other.close();
  });

  test('list a group that has no budget, and list keys with their groups as soon as a key has one', async () => {
    expect(columns(await showGroups({}))[1]).toEqual(['research', '0', '0 of 8', '-', '-', '-', '-']);
    expect(columns(await listKeys({}))[0]).not.toContain('GROUP');
    await gateway.gateway.keys.create({ name: 'ann', group: 'research' });
    const [head = [], ...rows] = columns(await listKeys({}));
    expect(Object.fromEntries(rows.map((row) => [row[1], row[head.indexOf('GROUP')]]))).toEqual({
      ann: 'research',
      test: '-',
    });
  });

  test('show with a key what its group may spend, what other keys of it have spent, and what is left', async () => {
    const other = await startGateway({
      price: { input: '1', output: '2' },
      groups: { research: { budget: { amount: '5', per: 'month', timeZone: 'UTC' } }, sales: {} },
    });
    vi.stubEnv('TEXTGATE_ADMIN_URL', other.adminUrl);
    vi.stubEnv('TEXTGATE_ADMIN_TOKEN', other.adminToken);
    onTestFinished(() => other.close());
    const { keys } = other.gateway;
    await keys.create({ name: 'ann', group: 'research' });
    await keys.create({ name: 'dan', group: 'sales' });
    const { key } = await keys.create({ name: 'bob', group: 'research' });
    const body = { model: 'small', messages: [{ role: 'user', content: 'x' }] };
    await other.post('/v1/chat/completions', body, { headers: { authorization: `Bearer ${key}` } });
    const [, ...lines] = columns(await showGroups({}));
    const [, , , , spent = '', left = ''] = lines.find(([name]) => name === 'research') ?? [];
    expect(Number(spent)).toBeGreaterThan(0);
    const shown = await showKey('ann', {});
    expect(shown).toMatch(/^budget +none set$/m);
    expect(shown).toMatch(/^group +research\ngroup budget +5\.00 per month \(UTC\)\nleft for the group +/m);
    expect(shown).toContain(` ${left}, ${spent} are spent; full again at `);
    expect(await showKey('dan', {})).toMatch(/^group +sales\ngroup budget +none set$/m);
  });
});

test('what a group spent in a month, by model, is one command, wherever its keys are now', async () => {
  const upstream = await startUpstream();
  upstream.play(sayTexts(['a']));
  let passedMs = Date.parse('2030-01-31T23:30:00Z') - Date.now();
  const other = await startGateway({
    upstreamUrl: upstream.url,
    price: { input: '100000', output: '2' },
    groups: { 'team-a': {}, 'team-b': {} },
    clock: { ...systemClock, now: () => Date.now() + passedMs },
  });
  onTestFinished(async () => {
    await other.close();
    await upstream.close();
  });
  const { keys } = other.gateway;
  const ask = async (key: string): Promise<void> => {
    const body = { model: 'small', messages: [{ role: 'user', content: 'x' }] };
    const headers = { authorization: `Bearer ${key}` };
    await (await other.post('/v1/chat/completions', body, { headers })).text();
    await other.recorded();
  };
  const ann = await keys.create({ name: 'ann', group: 'team-a' });
  const bob = await keys.create({ name: 'bob', group: 'team-b' });
  for (const { key } of [ann, bob, ann]) await ask(key);
  await keys.update(ann.id, { group: 'team-b' });
  await ask(ann.key);
  passedMs += 3_600_000;
  await keys.update(ann.id, { group: 'team-a' });
  await ask(ann.key);

  const run = async (...args: readonly string[]): Promise<string> => {
    const { code, stdout } = await runCommand(['usage', ...args], undefined, {
      TEXTGATE_ADMIN_URL: other.adminUrl,
      TEXTGATE_ADMIN_TOKEN: other.adminToken,
    });
    expect(code).toBe(0);
    return stdout;
  };
  expect(columns(await run('--by', 'model', '--group', 'team-a', '--month', '2030-01'))).toEqual([
    ['MODEL', 'REQUESTS', 'IN', 'CACHED', 'OUT', 'CHARGE'],
    ['small', '2', '22', '0', '14', '2.200028'],
    ['from 2030-01-01 to 2030-02-01 (UTC); charges in USD'],
    [''],
  ]);
  // Rows are in the order of the keys' ids.
  const rows = columns(await run('--by', 'group,key', '--month', '2030-01')).slice(1, 4);
  expect(rows.toSorted((one, next) => (one.join() < next.join() ? -1 : 1))).toEqual([
    ['team-a', 'ann', '2', '22', '0', '14', '2.200028'],
    ['team-b', 'ann', '1', '11', '0', '7', '1.100014'],
    ['team-b', 'bob', '1', '11', '0', '7', '1.100014'],
  ]);
});

describe('groups of keys that the config lacks', () => {
  const config = (groups: ConfigInput['groups']): ConfigInput => ({
    server: { port: 0 },
    admin: { port: 0, token: 'an-admin-token-for-tests' },
    storage: { url: 'sqlite::memory:', durability: 'normal' },
    upstreams: { local: { url: 'demo:', apiKey: 'sk-upstream-secret' } },
    models: { small: { routes: [{ upstream: 'local', model: 'tiny' }], free: true } },
    groups,
  });

  test('are named by the list of groups with how many keys are refused, and with each of the keys', async () => {
    const gateway = await startGateway({ groups: { research: {}, sales: {}, old: {} } });
    onTestFinished(() => gateway.close());
    vi.stubEnv('TEXTGATE_ADMIN_URL', gateway.adminUrl);
    vi.stubEnv('TEXTGATE_ADMIN_TOKEN', gateway.adminToken);
    onTestFinished(() => void vi.unstubAllEnvs());
    const { keys } = gateway.gateway;
    for (const name of ['ann', 'bob']) await keys.create({ name, group: 'research' });
    await keys.create({ name: 'cem', group: 'sales' });
    await keys.revoke((await keys.create({ name: 'gone', group: 'old' })).id);
    expect(await showGroups({})).not.toContain('refused');
    expect(await showKey('ann', {})).toMatch(/^group +research$/m);

    gateway.gateway.reload(config({ sales: {} }));
    const [, ...lines] = (await showGroups({})).split('\n');
    expect(lines[0]).toMatch(/^sales +1 +0 /);
    expect(lines.slice(1)).toEqual([
      'not in the config, so that all requests of their keys are refused: research (2 keys)',
    ]);
    expect(await showKey('ann', {})).toMatch(
      /^group +research, which is not in the config: its requests are refused$/m,
    );
    gateway.gateway.reload(config({}));
    expect(await showGroups({})).toMatch(
      /^the config has no groups: [^]*\nnot in the config, [^]*: research \(2 keys\), sales \(1 key\)$/,
    );
  });
});

describe('the group of a key', () => {
  const cost = { input: '1000', output: '1000' };
  const config = {
    groups: {
      research: { concurrency: 8, budget: { amount: '500', per: 'month' } },
      support: { concurrency: 1 },
    },
    upstreams: { demo: { url: 'demo:' } },
    models: { demo: { routes: [{ upstream: 'demo', model: 'demo' }], price: cost } },
  };

  test('is given, shown, changed and taken away by commands, which list what its keys have spent', async () => {
    const gateway = await startCommanded({ config, keySettings: { group: 'research' } });
    const run = async (...args: readonly string[]): Promise<string> => {
      const { stdout, stderr } = await gateway.run('keys', ...args);
      return stdout + stderr;
    };
    expect(await run('show', 'test')).toMatch(/^group +research$/m);
    expect((await gateway.ask()).status).toBe(200);
    const [head, research = [], support] = columns(await run('groups'));
    expect(head).toEqual(['GROUP', 'KEYS', 'IN PROGRESS', 'BUDGET', 'SPENT', 'AVAILABLE', 'FULL AGAIN AT']);
    const [, , , budget, spent, available, refillsAt] = research;
    expect(research.slice(0, 4)).toEqual(['research', '1', '0 of 8', '500.00 per month']);
    expect(Number(spent)).toBeGreaterThan(0);
    expect(Number(spent) + Number(available)).toBeCloseTo(500);
    expect([budget, refillsAt]).toEqual([
      '500.00 per month',
      expect.stringMatching(/^\d{4}-\d\d-01T00:00:00\.000Z$/),
    ]);
    expect(support).toEqual(['support', '0', '0 of 1', '-', '-', '-', '-']);

    await run('create', 'bob', '--group', 'support');
    const [{ name, group }] = JSON.parse(await run('list', '--json')) as [Record<string, unknown>];
    expect([name, group]).toEqual(['bob', 'support']);
    expect(await run('update', 'bob', '--group', 'research')).toMatch(/ is changed; /);
    expect(await run('show', 'bob')).toMatch(/^group +research$/m);
    expect(await run('update', 'bob', '--group', 'reserch')).toBe(
      "textgate: --group: the config has no group 'reserch': it has research, support. Add it to the groups of the config first.\n",
    );
    await run('update', 'bob', '--group', 'none');
    expect(await run('show', 'bob')).toMatch(/^group +none$/m);
    expect(JSON.parse(await run('groups', '--json'))).toMatchObject([
      { name: 'research', budget: { spent } },
      { name: 'support', budget: null },
    ]);
  });
});

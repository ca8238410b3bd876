import { writeFileSync } from 'node:fs';
import { setGlobalProxyFromEnv } from 'node:http';
import { join } from 'node:path';
import type { Command } from 'commander';
import { describe, expect, onTestFinished, test } from 'vitest';
import { keyRow } from '../../src/cli/import/keys/read-row.ts';
import { createProgram } from '../../src/cli/program.ts';
import { openPriceList } from '../../src/prices/open-price-list.ts';
import { startHttpProxy } from '../support/http-proxy.ts';
import { startCommanded } from '../support/commanded-gateway.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import { runCommand } from '../support/run-command.ts';
import { startTextgate } from '../support/textgate-process.ts';

/** The arguments with which each command calls a gateway. */
const calls: Readonly<Record<string, readonly string[]>> = {
  health: ['--ready'],
  'keys create': ['carol'],
  'keys list': [],
  'keys show': ['test'],
  'keys update': ['test', '--concurrency', '3'],
  'keys revoke': ['carol'],
  'keys rotate': ['test', '--grace', '1h'],
  'keys credit': ['test', '1.00', '--reference', 'first'],
  'keys groups': [],
  'import litellm': ['--keys', 'keys.csv'],
  records: [],
  'records archive': [],
  'ledger verify': [],
  audit: ['--search', 'test'],
  reconcile: ['usage.csv', '--upstream', 'demo'],
  usage: [],
  'prices diff': ['later.json', '--config', 'listed.yaml'],
  show: ['00000000'],
  cancel: ['00000000'],
  top: ['--once'],
  say: ['Say hello'],
  'webhooks list': [],
  'webhooks deliveries': [],
  'webhooks test': ['any'],
  'webhooks resend': ['any'],
  'statement get': ['test'],
  'statement verify': ['statement.txt', '--keys', '<url>/v1/statement-keys'],
  backup: ['copy.db'],
};

/** Commands that call no gateway. */
const others = [
  'serve',
  'config check',
  'config show',
  'config schema',
  'doctor',
  'migrate',
  'restore',
  'completion',
  'init',
  'prices',
];

/** The names of all commands that can be run; some have an action of their own beside their inner command. */
function namesOf(command: Command, before = ''): readonly string[] {
  return command.commands.flatMap((each) => {
    const name = `${before}${each.name()}`;
    const inner = namesOf(each, `${name} `);
    return inner.length === 0 || ['records', 'prices'].includes(name) ? [name, ...inner] : inner;
  });
}

/** A proxy that nothing may reach, and the variables by which Node's own clients send everything to it. */
async function startTrap() {
  const proxy = await startHttpProxy();
  onTestFinished(() => proxy.close());
  const { url } = proxy;
  return { proxy, variables: { NODE_USE_ENV_PROXY: '1', HTTP_PROXY: url, HTTPS_PROXY: url, ALL_PROXY: url } };
}

/** A relay before a listener, which counts the connections to it. */
async function startRelay(url: string) {
  const relay = await startTcpProxy({ host: '127.0.0.1', port: Number(new URL(url).port) });
  onTestFinished(() => relay.close());
  return { url: `http://127.0.0.1:${relay.port}`, accepted: () => relay.accepted };
}

test('each command is one that calls a gateway, or one that does not', () => {
  expect([...Object.keys(calls), ...others].toSorted()).toEqual([...namesOf(createProgram())].toSorted());
});

test('every command reaches its gateway without the proxy that Node is told to use', async () => {
  const { proxy, variables } = await startTrap();
  const gateway = await startCommanded();
  const [admin, clients] = [await startRelay(gateway.adminUrl), await startRelay(gateway.url)];
  const folder = makeTemporaryFolder();
  writeFileSync(join(folder, 'usage.csv'), `date,model,input_tokens,output_tokens\n2030-01-31,demo,1,1\n`);
  const columns = Object.keys(keyRow.shape);
  writeFileSync(
    join(folder, 'keys.csv'),
    `${columns.join(',')}\n${'5'.repeat(64)}${','.repeat(columns.length - 1)}\n`,
  );
  writeFileSync(join(folder, 'later.json'), JSON.stringify([{ id: 'other', api_pattern: 'x', models: [] }]));
  writeFileSync(
    join(folder, 'listed.yaml'),
    'upstreams: { demo: { url: "demo:" } }\nmodels: { demo: { routes: [{ upstream: demo, model: demo }], price: { list: openai/gpt-4o } } }',
  );
  // The list is that of the whole process.
  const list = await openPriceList().all();
  onTestFinished(() => openPriceList().replace(list));
  writeFileSync(join(folder, 'statement.txt'), 'textgate statement 1\n');
  const environment = {
    ...gateway.adminEnvironment,
    ...variables,
    TEXTGATE_ADMIN_URL: admin.url,
    TEXTGATE_URL: clients.url,
    TEXTGATE_API_KEY: gateway.key,
  };
  // As a process does at its start by the variables.
  onTestFinished(setGlobalProxyFromEnv(variables));
  await fetch(`${gateway.adminUrl}/healthz`);
  expect(proxy.asked.splice(0)).toEqual([`GET ${gateway.adminUrl}/healthz`]);
  const called: string[] = [];
  for (const [name, args] of Object.entries(calls)) {
    const before = admin.accepted() + clients.accepted();
    const line = [...name.split(' '), ...args.map((arg) => arg.replace('<url>', clients.url))];
    const { stderr } = await runCommand(line, folder, environment);
    expect({ name, asked: proxy.asked }).toEqual({ name, asked: [] });
    expect(`${name}: ${stderr}`).not.toMatch(/does not answer|no gateway|can't be read/);
    if (admin.accepted() + clients.accepted() > before) called.push(name);
  }
  expect(called).toEqual(Object.keys(calls));
});

describe('TEXTGATE_COMMAND_PROXY', () => {
  test('is the proxy through which commands call a gateway', async () => {
    const { proxy, variables } = await startTrap();
    const own = await startHttpProxy();
    onTestFinished(() => own.close());
    own.credentials = 'me:secret-word';
    const gateway = await startCommanded();
    const { code, stdout } = await startTextgate(['keys', 'list'], makeTemporaryFolder(), {
      ...gateway.adminEnvironment,
      ...variables,
      TEXTGATE_COMMAND_PROXY: `http://me:secret-word@127.0.0.1:${own.port}`,
    }).finished;
    expect([code, stdout]).toEqual([0, expect.stringContaining('test')]);
    expect(own.asked).toEqual([expect.stringMatching(`^GET ${gateway.adminUrl}/admin/keys`)]);
    expect(proxy.asked).toEqual([]);
  });

  test('with a fault is named and not quoted, by commands for operators and for clients', async () => {
    const environment = {
      TEXTGATE_COMMAND_PROXY: 'socks5://me:secret-word@proxy.test:1080',
      TEXTGATE_ADMIN_TOKEN: 'any',
      TEXTGATE_API_KEY: 'any',
    };
    for (const line of [['keys', 'list'], ['health'], ['say', 'x']]) {
      const { code, stderr } = await runCommand(line, undefined, environment);
      expect(code).toBe(1);
      expect(stderr).toMatch(/^textgate: TEXTGATE_COMMAND_PROXY: expected .*SOCKS is not supported\n$/);
    }
  });
});

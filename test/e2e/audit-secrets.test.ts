import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { PresentedAuditLine } from '../../src/http/present/audit.ts';
import { adminPaths } from '../openapi/paths.ts';
import { plant } from '../support/canaries.ts';
import { sendRaw } from '../support/console-client.ts';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';

const adasToken = 'ada-token-of-the-operators-7';
const declared = 'declared-Q8w-Zx7-Mn4-Rt9-Lk2-Pv6';

/** A gateway on a file, whose end fails where a secret is in its database, its log or its metrics. */
async function open() {
  const folder = mkdtempSync(join(tmpdir(), 'textgate-'));
  const clock = createFakeClock(Date.UTC(2030, 0));
  const gateway = await startGateway({
    admin: { tokens: [{ name: 'ada', token: adasToken }] },
    keys: { bob: { key: declared } },
    storage: join(folder, 'textgate.db'),
    clock,
  });
  plant(declared);
  onTestFinished(async () => {
    await gateway.close();
    rmSync(folder, { recursive: true });
  });
  return { gateway, clock };
}

const methods = ['get', 'post', 'patch', 'delete'] as const;

/** Each route below `/admin`, with a text in each of its places. */
const targetsWith = (text: string) =>
  Object.entries(adminPaths)
    .filter(([path]) => path.startsWith('/admin/'))
    .flatMap(([path, item]) =>
      methods
        .filter((method) => Object.hasOwn(item, method))
        .map((method) => ({
          method: method.toUpperCase(),
          target: `${path.replaceAll(/\{\w+\}/g, text)}?key=${text}&search=${text}&before=${text}&actor=${text}`,
        })),
    );

/** Bodies with a text in each field that has one. */
const bodiesWith = (text: string): readonly object[] => [
  { name: text },
  { name: `prod ${text}` },
  { name: 'prod', tags: [text] },
  { name: 'prod', group: text },
  { name: 'prod', models: [text] },
  { amount: '1', reference: text },
  { amount: '1', reference: `paid by ${text}` },
  { grace: text },
  { webhook: text },
  { before: '2020-01-01', ended: [text], lost: [text] },
  { model: text, messages: [{ role: 'user', content: 'hi' }] },
  { [text]: text },
];

async function send(gateway: TestGateway, method: string, target: string, token: string, body?: object) {
  const headers = [
    ['Authorization', `Bearer ${token}`],
    ['Content-Type', 'application/json'],
  ] as const;
  const text = body === undefined ? {} : { body: JSON.stringify(body) };
  return sendRaw(gateway, { method, target, headers, ...text });
}

/** All lines of the audit, newest first. */
async function audit(gateway: TestGateway): Promise<readonly PresentedAuditLine[]> {
  const lines: PresentedAuditLine[] = [];
  for (let before: string | null = '999999'; before !== null;) {
    const { body } = await send(gateway, 'GET', `/admin/audit?limit=200&before=${before}`, adasToken);
    const page = JSON.parse(body) as {
      readonly data: readonly PresentedAuditLine[];
      readonly next: string | null;
    };
    lines.push(...page.data);
    before = page.next;
  }
  return lines;
}

test('a secret in any place of any request to the admin API is nowhere in the audit, the database, the log and the metrics', async () => {
  const { gateway, clock } = await open();
  const { id } = await gateway.gateway.keys.create({ name: 'paying', balance: '1' });
  for (const secret of [gateway.key, declared, adasToken]) {
    for (const { method, target } of targetsWith(secret))
      // A verification and an archive pause on the clock of the test, which stands still meanwhile.
      for (const token of target.startsWith('/admin/ledger')
        ? ['a-wrong-token']
        : [adasToken, 'a-wrong-token']) {
        await send(gateway, method, target, token, method === 'GET' ? undefined : {});
        clock.advance(61_000);
      }
    for (const body of bodiesWith(secret))
      for (const [method, target] of [
        ['POST', '/admin/keys'],
        ['PATCH', `/admin/keys/${id}`],
        ['POST', `/admin/keys/${id}/credits`],
        ['POST', `/admin/keys/${id}/rotate`],
        ['POST', '/admin/webhooks/events/evt_1/resend'],
        ['POST', '/admin/archive/removals'],
        ['POST', '/admin/try/chat/completions'],
        ['POST', '/console/session'],
      ] as const) {
        await send(gateway, method, target, adasToken, body);
        clock.advance(61_000);
      }
    const lines = await audit(gateway);
    expect(lines.length).toBeGreaterThan(100);
    expect(JSON.stringify(lines)).not.toContain(secret);
  }
});

test('of an address of a config the origin is in the audit, and never its path or its query', async () => {
  const hook = 'hook-secret-T0S3CR3T';
  const { gateway } = await open();
  const reload = (path: string) =>
    gateway.gateway.reload({
      server: { port: 0 },
      admin: { port: 0, token: gateway.adminToken, tokens: [{ name: 'ada', token: adasToken }] },
      keys: { bob: { key: declared } },
      models: { small: { routes: [{ upstream: 'local', model: 'tiny' }], free: true } },
      webhooks: {
        ops: { url: `http://127.0.0.1:9/hook/${path}`, secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' },
      },
      upstreams: {
        local: { url: 'demo:' },
        far: { url: `http://127.0.0.1:9/${path}/v1`, proxy: `http://user:${path}@127.0.0.1:8/` },
      },
    });
  const loads = async () => (await audit(gateway)).filter(({ action }) => action === 'config.load');
  const seen = (await loads()).length;
  reload(hook);
  await eventually('the first is noted', async () => (await loads()).length === seen + 1);
  reload(`${hook}-2`);
  await eventually('the second is noted', async () => (await loads()).length === seen + 2);
  const [last] = await loads();
  const origin = (port: string): unknown =>
    expect.stringMatching(new RegExp(`^http://127\\.0\\.0\\.1${port} sha256:[0-9a-f]{12}$`));
  expect(last?.changes).toEqual([
    { field: 'upstreams.far.proxy', before: origin(':8'), after: origin(':8') },
    { field: 'upstreams.far.url', before: origin(':9'), after: origin(':9') },
    { field: 'webhooks.ops.url', before: origin(':9'), after: origin(':9') },
  ]);
  expect(JSON.stringify(await audit(gateway))).not.toContain(hook);
});

test('a path of the admin API is told with each part that is a route’s', async () => {
  const { gateway, clock } = await open();
  const templates = Object.keys(adminPaths).filter((path) => path.startsWith('/admin/'));
  for (const path of templates) {
    await send(gateway, 'GET', path.replaceAll(/\{\w+\}/g, '-'), 'a-wrong-token');
    clock.advance(61_000);
  }
  const wanted = templates.map((path) => `GET ${path.slice('/admin'.length).replaceAll(/\{\w+\}/g, ':id')}`);
  const subjects = async () => {
    const calls = (await audit(gateway)).filter(({ action }) => action === 'admin.call');
    return new Set(calls.map(({ subject }) => subject));
  };
  await eventually('all have lines', async () => (await subjects()).size >= wanted.length - 1);
  expect([...(await subjects())].filter((subject) => !wanted.includes(subject ?? ''))).toEqual([]);
});

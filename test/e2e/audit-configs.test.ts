import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createGateway } from '../../src/index.ts';
import type { ConfigInput } from '../../src/index.ts';
import type { PresentedAuditLine } from '../../src/http/present/audit.ts';
import { eventually } from '../support/eventually.ts';

const token = 'the-admin-token-of-this-test';

/** Starts a gateway with a config, and ends it. `loads` are the changes of each line of a config, newest first. */
async function start(config: ConfigInput) {
  const gateway = createGateway(config, { logLevel: 'silent' });
  onTestFinished(() => gateway.close());
  const { adminUrl } = await gateway.listen();
  const loads = async (): Promise<readonly PresentedAuditLine['changes'][]> => {
    const headers = { authorization: `Bearer ${token}` };
    const answer = await fetch(`${adminUrl}/admin/audit?action=config.load`, { headers });
    const { data } = (await answer.json()) as { readonly data: readonly PresentedAuditLine[] };
    return data.map(({ changes }) => changes);
  };
  return { gateway, loads };
}

test('a setting that waits for the next start is marked in the line of the reload, and has a line at that start', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'textgate-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const configOf = (maxHead: string, topKeys: number): ConfigInput => ({
    server: { port: 0, maxHead },
    admin: { port: 0, token },
    metrics: { topKeys },
    storage: { url: `sqlite:${join(folder, 'textgate.db')}`, durability: 'normal' },
    upstreams: { local: { url: 'demo:' } },
    models: { small: { routes: [{ upstream: 'local', model: 'tiny' }], free: true } },
  });
  const waiting = 'server.maxHead (from the next start on)';
  const [small, large] = ['32KiB', '64KiB'];
  const { gateway, loads } = await start(configOf(small, 1));
  gateway.reload(configOf(large, 2));
  await eventually('the reload is noted', async () => (await loads()).length === 1);
  expect(await loads()).toEqual([
    [
      { field: 'metrics.topKeys', before: '1', after: '2' },
      { field: waiting, before: null, after: large },
    ],
  ]);
  gateway.reload(configOf(small, 2));
  await eventually('the way back is noted', async () => (await loads()).length === 2);
  expect((await loads())[0]).toEqual([{ field: waiting, before: large, after: null }]);
  gateway.reload(configOf(large, 2));
  await eventually('the other reload is noted', async () => (await loads()).length === 3);
  await gateway.close();
  const later = await start(configOf(large, 2));
  await eventually('the start is noted', async () => (await later.loads()).length === 4);
  expect((await later.loads())[0]).toEqual([{ field: 'server.maxHead', before: small, after: large }]);
});

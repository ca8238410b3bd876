import { expect, onTestFinished, test, vi } from 'vitest';
import { readKeyNames } from '../../src/console/api/read-key-names.ts';
import { askAdmin } from '../support/admin-client.ts';
import { startGateway } from '../support/test-gateway.ts';

/** A gateway, and what the console's page asks of it. */
async function open() {
  const gateway = await startGateway();
  const asked: string[] = [];
  const send = fetch;
  vi.stubGlobal('fetch', (path: string, init: RequestInit) => {
    if (!path.startsWith('../')) return send(path, init);
    asked.push(path.replace(/\?.*/, ''));
    const headers = { authorization: `Bearer ${gateway.adminToken}` };
    return send(new URL(path, `${gateway.adminUrl}/console/`), { ...init, headers });
  });
  onTestFinished(async () => {
    vi.unstubAllGlobals();
    await gateway.close();
  });
  const { signal } = new AbortController();
  return { gateway, asked, read: (ids: readonly string[]) => readKeyNames(ids, signal) };
}

test('the names of many keys are read in one request, and as they are now', async () => {
  const { gateway, asked, read } = await open();
  const keys = await Promise.all(['one', 'two', 'three'].map((name) => gateway.gateway.createKey(name)));
  const ids = keys.map(({ key }) => key.id);
  expect([...(await read([...ids, ...ids])).values()].toSorted()).toEqual(['one', 'three', 'two']);
  expect(asked).toEqual(['../admin/keys']);
  await askAdmin(gateway, 'PATCH', `/keys/${ids[0]}`, { name: 'renamed' });
  expect((await read(ids)).get(ids[0] ?? '')).toBe('renamed');
});

test('keys that the list lacks are asked alone, up to a bound, and one that there is not hides no other', async () => {
  const { gateway, asked, read } = await open();
  const { key } = await gateway.gateway.createKey('one');
  const none = Array.from({ length: 100 }, (_, number) => `key_none_${number}`);
  expect([...(await read([...none, key.id]))]).toEqual([[key.id, 'one']]);
  expect(asked.length).toBeLessThanOrEqual(21);
});

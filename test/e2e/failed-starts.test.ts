import { join } from 'node:path';
import { onTestFinished, expect, test } from 'vitest';
import { createGateway } from '../../src/index.ts';
import type { ConfigInput, Gateway } from '../../src/index.ts';
import { eventually } from '../support/eventually.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';

const demo = { upstreams: { demo: { url: 'demo:' } }, models: { from: 'demo' } };

/** Creates a gateway from code; `logged` are the lines of its log. */
function create(config: Pick<ConfigInput, 'server' | 'admin' | 'storage'>): {
  readonly gateway: Gateway;
  readonly logged: readonly string[];
} {
  const logged: string[] = [];
  const gateway = createGateway(
    { ...demo, server: { port: 0 }, admin: { port: 0 }, storage: { url: 'sqlite::memory:' }, ...config },
    { logDestination: { write: (line) => void logged.push(line) } },
  );
  onTestFinished(() => gateway.close().catch(() => {}));
  return { gateway, logged };
}

test('listen names the setting of a port that is in use, and keeps the code of the error', async () => {
  const { url, adminUrl } = await create({}).gateway.listen();
  const port = Number(new URL(url).port);
  await expect(create({ server: { port } }).gateway.listen()).rejects.toMatchObject({
    message: `server.port: port ${port} of 127.0.0.1 is in use`,
    code: 'EADDRINUSE',
    port,
  });
  const adminPort = Number(new URL(adminUrl).port);
  await expect(create({ admin: { port: adminPort } }).gateway.listen()).rejects.toThrow(
    `admin.port: port ${adminPort} of 127.0.0.1 is in use`,
  );
});

test('a database that can not be opened is reported once: by listen, or in the log of a gateway that does not listen', async () => {
  const storage = { url: `sqlite:${join(makeTemporaryFolder(), 'textgate.db')}` };
  await create({ storage }).gateway.listen();
  const listening = create({ storage });
  await expect(listening.gateway.listen()).rejects.toThrow('another textgate process is using it');
  await listening.gateway.close().catch(() => {});
  expect(listening.logged).toEqual([]);

  const mounted = create({ storage });
  await eventually('it is logged', () => mounted.logged.length > 0);
  await mounted.gateway.close().catch(() => {});
  expect(mounted.logged.map((line) => JSON.parse(line) as object)).toMatchObject([
    {
      msg: 'database not opened: requests are refused',
      reason: expect.stringContaining('another textgate process is using it'),
    },
  ]);
});

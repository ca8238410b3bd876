import { existsSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { call } from '../support/call-socket.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { startGateway } from '../support/test-gateway.ts';
import { serveHere } from '../support/serve-here.ts';
import { startTextgate } from '../support/textgate-process.ts';

const body = { model: 'demo', messages: [{ role: 'user', content: 'x' }] };

test('a gateway at a unix socket serves more clients than an address may have, and removes the file at its end', async () => {
  const socket = join(makeTemporaryFolder(), 'textgate.sock');
  const gateway = await startGateway({ server: { socket, socketMode: '600', maxAnonymousPerAddress: 1 } });
  expect(gateway.url).toBe(`http://unix:${socket}:`);
  expect((statSync(socket).mode & 0o777).toString(8)).toBe('600');
  const statuses = await Promise.all(Array.from({ length: 5 }, () => call(socket, '/healthz')));
  expect(statuses.map(([status]) => status)).toEqual([200, 200, 200, 200, 200]);
  expect((await call(socket, '/v1/models', gateway.key))[0]).toBe(200);
  await gateway.close();
  expect(existsSync(socket)).toBe(false);
});

test('textgate serve replaces the socket of a process that was killed, and says how to call it', async () => {
  const folder = makeTemporaryFolder();
  const socket = join(folder, 'textgate.sock');
  writeFileSync(join(folder, 'textgate.yaml'), JSON.stringify(configOf(socket)));
  const started = [['serve', '--config', 'textgate.yaml'], folder, { TEXTGATE_HOST: '0.0.0.0' }] as const;
  const first = startTextgate(...started);
  await first.printed(/curl -N --unix-socket \S+ http:\/\/localhost\/llm\/v1\/chat\/completions/);
  const second = await serveHere(...started).finished;
  expect(second.code).toBe(1);
  expect(second.stderr.replaceAll(/\s+/g, ' ')).toContain(
    `server.socket: a process listens on ${socket} already: stop it, or write another path`,
  );
  first.signal('SIGKILL');
  await first.finished;
  expect(existsSync(socket)).toBe(true);
  const third = serveHere(...started);
  await third.printed(/serves http:\/\/unix:\S+:\/llm\/v1/);
  const [key] = await third.printed(/sk-tg-\S+/);
  expect((await call(socket, '/llm/v1/chat/completions', key, body))[0]).toBe(200);
  third.signal('SIGTERM');
  await third.finished;
  expect(existsSync(socket)).toBe(false);
});

test('a file that is no socket is left as it is, and the start fails', async () => {
  const file = join(makeTemporaryFolder(), 'notes.txt');
  writeFileSync(file, 'notes');
  await expect(startGateway({ server: { socket: file } })).rejects.toThrow(
    `server.socket: ${file} exists, and is no socket: remove it, or write another path`,
  );
});

test('a socket in a missing folder is refused with the name of the folder', async () => {
  const folder = join(makeTemporaryFolder(), 'no-such-folder');
  await expect(startGateway({ server: { socket: join(folder, 'textgate.sock') } })).rejects.toThrow(
    `server.socket: there is no folder ${folder}: create it, or write another path`,
  );
});

function configOf(socket: string): object {
  return {
    server: { socket, basePath: '/llm' },
    admin: { port: 0, token: 'an-admin-token-for-tests' },
    storage: { url: 'sqlite::memory:' },
    upstreams: { demo: { url: 'demo:' } },
    models: { demo: { routes: [{ upstream: 'demo', model: 'demo' }], free: true } },
  };
}

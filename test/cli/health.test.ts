import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { startUpstream } from '../support/scripted-upstream.ts';
import { freePort } from '../support/free-port.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { runCommand } from '../support/run-command.ts';
import { serveHere } from '../support/serve-here.ts';
import type { Finished } from '../support/textgate-process.ts';

const demo = `
upstreams: { demo: { url: "demo:" } }
models: { demo: { routes: [ { upstream: demo, model: demo } ], free: true } }
`;

/** Runs `textgate health` as the image does: with the folder and the environment of the gateway. */
function check(folder: string, environment: Record<string, string>, ...options: string[]): Promise<Finished> {
  return runCommand(['health', ...options], folder, environment);
}

/** Starts a gateway with a config file, and waits until it serves. */
async function serve(text: string, environment: Record<string, string> = {}) {
  const folder = makeTemporaryFolder();
  const file = join(folder, 'textgate.yaml');
  writeFileSync(file, text);
  const variables = { TEXTGATE_CONFIG: file, ...environment };
  const server = serveHere(['serve'], folder, variables);
  await server.printed(/textgate serves/);
  return { folder, file, variables, server };
}

describe('textgate health', () => {
  test.each([
    ['a port', (port: number) => `{ port: ${port} }`, '127.0.0.1'],
    ['every address', (port: number) => `{ host: 0.0.0.0, port: ${port} }`, '127.0.0.1'],
    ['every IPv6 address', (port: number) => `{ host: "::", port: ${port} }`, '[::1]'],
    ['a port from the environment', () => '{ port: "${ADMIN}" }', '127.0.0.1'],
  ])('finds the admin listener of a config with %s', async (_what, section, host) => {
    const port = await freePort();
    const text = `server: { port: 0 }\nadmin: ${section(port)}\n${demo}`;
    const { folder, variables } = await serve(text, { ADMIN: String(port) });
    expect(await check(folder, variables)).toMatchObject({
      code: 0,
      stdout: `http://${host}:${port}/healthz: ok\n`,
      stderr: '',
    });
    expect(await check(folder, variables, '--ready')).toMatchObject({
      code: 0,
      stdout: `http://${host}:${port}/readyz: ready\n`,
    });
  });

  test('finds the admin listener of the environment, and fails once the gateway is gone', async () => {
    const folder = makeTemporaryFolder();
    const port = await freePort();
    const variables = {
      TEXTGATE_PORT: '0',
      TEXTGATE_ADMIN_PORT: String(port),
      TEXTGATE_ADMIN_HOST: '0.0.0.0',
    };
    const server = serveHere(['serve'], folder, variables);
    await server.printed(/textgate serves/);
    expect(await check(folder, variables)).toMatchObject({ code: 0 });
    server.signal('SIGTERM');
    await server.finished;
    expect(await check(folder, variables)).toMatchObject({
      code: 1,
      stdout: '',
      stderr: `textgate: http://127.0.0.1:${port}/healthz: no gateway listens there\n`,
    });
  });

  test('is answered at the port for clients, too', async () => {
    const [port, adminPort] = [await freePort(), await freePort()];
    const { folder } = await serve(`server: { port: ${port} }\nadmin: { port: ${adminPort} }\n${demo}`);
    const { code, stdout } = await check(folder, { TEXTGATE_ADMIN_URL: `http://127.0.0.1:${port}` });
    expect([code, stdout]).toEqual([0, `http://127.0.0.1:${port}/healthz: ok\n`]);
  });

  test('says that another program answers', async () => {
    const other = await startUpstream();
    other.play((response) => void response.writeHead(404).end());
    const { origin } = new URL(other.url);
    const { code, stderr } = await check(makeTemporaryFolder(), { TEXTGATE_ADMIN_URL: origin });
    const message = `textgate: ${origin}/healthz: status 404: this is no gateway; is another program at this port?\n`;
    expect([code, stderr]).toEqual([1, message]);
    await other.close();
  });

  test('says alive, and not ready, of a gateway whose upstream has not listed its models', async () => {
    const upstream = await startUpstream();
    upstream.play((response) => void response.writeHead(500).end());
    const port = await freePort();
    const text = `server: { port: 0 }\nadmin: { port: ${port} }\nupstreams: { own: { url: "${upstream.url}" } }\nmodels: { from: own }\n`;
    const { folder, file, variables } = await serve(text);
    expect(await check(folder, variables)).toMatchObject({ code: 0 });
    const ready = await check(folder, {}, '--ready', '--config', file);
    expect(ready).toMatchObject({ code: 1, stdout: '' });
    expect(ready.stderr).toMatch(/^textgate: http:\S+\/readyz: not ready: .+\n$/);
    await upstream.close();
  });

  test('keeps a running gateway healthy whose config file got a fault', async () => {
    const port = await freePort();
    const text = `server: { port: 0 }\nadmin: { port: ${port} }\n${demo}`;
    const { folder, file, variables, server } = await serve(text);
    writeFileSync(file, `${text}surprise: 1\n`);
    server.signal('SIGHUP');
    await eventually('the fault is reported', () => server.output().includes('surprise'));
    expect(await check(folder, variables)).toMatchObject({ code: 0 });
  });

  test('names the faults of the admin section of a config', async () => {
    const folder = makeTemporaryFolder();
    writeFileSync(join(folder, 'textgate.yaml'), `admin: { prt: 1 }\n${demo}`);
    const { code, stderr } = await check(folder, {}, '--config', 'textgate.yaml');
    expect(code).toBe(1);
    expect(stderr).toContain("prt: unknown key; did you mean 'port'?");
  });
});

test('commands find the gateway and its token by the config that TEXTGATE_CONFIG names', async () => {
  const port = await freePort();
  const text = `server: { port: 0 }\nadmin: { port: ${port}, token: a-token-of-this-config }\n${demo}`;
  const { folder, variables } = await serve(text);
  const made = await runCommand(['keys', 'create', 'bob'], folder, variables);
  expect(made).toMatchObject({ code: 0 });
  expect(made.stdout).toMatch(/^sk-tg-/);
});

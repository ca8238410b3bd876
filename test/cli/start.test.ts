import { existsSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo, Server } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { isServing } from '../../src/cli/early-signals.ts';
import { eventually } from '../support/eventually.ts';
import { startUpstream } from '../support/scripted-upstream.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { serveHere } from '../support/serve-here.ts';
import { runCommand } from '../support/run-command.ts';
import { freePorts, signalAgain, startTextgate } from '../support/textgate-process.ts';

const config = `
server: { port: 0 }
admin: { port: 0 }
upstreams: { demo: { url: "demo:" } }
models: { demo: { routes: [ { upstream: demo, model: demo } ], free: true } }
`;

function folderWith(text: string): string {
  const folder = makeTemporaryFolder();
  writeFileSync(join(folder, 'textgate.yaml'), text);
  return folder;
}

/** A port that another server has, and this server. */
async function takePort(): Promise<number> {
  const server: Server = createServer();
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

describe('the options of serve', () => {
  test('start a gateway in front of a server, with a key from a variable, without the word serve', async () => {
    const upstream = await startUpstream();
    upstream.play((response) => void response.end('{"data":[{"id":"org/model-7"}]}'));
    const options = `--upstream ${upstream.url} --upstream-key-env MY_KEY --host 127.0.0.1 --port 0`;
    const adminOptions = '--admin-host 0.0.0.0 --admin-port 0';
    const environment = {
      MY_KEY: 'sk-up',
      TEXTGATE_UPSTREAM_URL: 'http://127.0.0.1:1/v1',
      TEXTGATE_PORT: '1',
    };
    const server = serveHere(`${options} ${adminOptions}`.split(' '), makeTemporaryFolder(), environment);
    const [, admin = ''] = await server.printed(/serves http:\/\/127\.0\.0\.1:\d+\/v1 \(admin: (\S+)\)/);
    expect(admin).toMatch(/^http:\/\/0\.0\.0\.0:\d+$/);
    const port = new URL(admin).port;
    const way = 'log in with the token in data/admin-token';
    await server.printed(new RegExp(`^console: http://127\\.0\\.0\\.1:${port}/console/ \\(${way}\\)$`, 'm'));
    await server.printed(/curl .*"model":"org\/model-7"/);
    expect(upstream.seen[0]?.headers.authorization).toBe('Bearer sk-up');
    await upstream.close();
  });

  test('are named when the upstream does not accept its key', async () => {
    const upstream = await startUpstream();
    upstream.play((response) => void response.writeHead(401).end('{}'));
    const options = ['--upstream', upstream.url, '--upstream-key-env', 'MY_KEY', '--port', '0'];
    const adminToken = 'an-admin-token-for-tests';
    const environment = { MY_KEY: 'sk-up', TEXTGATE_ADMIN_PORT: '0', TEXTGATE_ADMIN_TOKEN: adminToken };
    const server = serveHere(options, makeTemporaryFolder(), environment);
    await server.printed(/MY_KEY/);
    await server.printed(/^console: \S+ \(log in with the admin token\)$/m);
    expect(server.output()).not.toContain('TEXTGATE_UPSTREAM');
    await upstream.close();
  });

  test('have precedence over the config file, at its reload, too', async () => {
    const folder = folderWith(config.replace('server: { port: 0 }', 'server: { port: 1, host: 10.9.8.7 }'));
    const options = ['--config', 'textgate.yaml', '--port', '0', '--host', '127.0.0.1'];
    const server = serveHere(options, folder);
    await server.printed(/serves http:\/\/127\.0\.0\.1:\d+\/v1/);
    writeFileSync(
      join(folder, 'textgate.yaml'),
      config.replace('server: { port: 0 }', 'server: { port: 2, drain: 20s }'),
    );
    server.signal('SIGHUP');
    await server.printed(/config reloaded/);
    expect(server.errors()).toMatch(/config reloaded: textgate\.yaml\n/);
  });

  test.each([
    [['--port', '99999'], /Expected a port from 0 to 65535\./],
    [['--upstream', 'nowhere'], /the command line can't be used:\n {2}- --upstream: /],
    [['--upstream-key-env', 'UNSET'], /--upstream-key-env: the environment variable UNSET is not set/],
    [['--config', 'c.yaml', '--upstream', 'demo:'], /--upstream can't be used with the config file c\.yaml/],
    [['--prot', '1'], /unknown option '--prot'\n\(Did you mean --port\?\)/],
  ])('%j are refused with the reason', async (options, reason) => {
    const { code, stdout, stderr } = await runCommand(options);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(reason);
  });

  test('textgate alone serves the demo, and its help has examples', async () => {
    const server = serveHere([], makeTemporaryFolder(), freePorts);
    await server.printed(/models: demo \(built in\)/);
    server.signal('SIGTERM');
    expect((await server.finished).code).toBe(0);
    const { code, stdout } = await runCommand(['--help']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Usage: textgate [^]*textgate --upstream http:\S+ /);
  });
});

describe('a start that fails', () => {
  const failing = async (
    options: readonly string[],
    folder = makeTemporaryFolder(),
    environment: Readonly<Record<string, string>> = freePorts,
  ): Promise<string> => {
    const { code, stderr } = await serveHere(options, folder, environment).finished;
    expect(code).toBe(1);
    return stderr.slice(stderr.indexOf('textgate can'));
  };

  test('because of a port in use prints the command with another one', async () => {
    const [port, adminPort] = [await takePort(), await takePort()];
    expect(await failing(['serve', '--port', String(port)])).toBe(
      `textgate can't start: port ${port} is in use. Start it on another one:\n  npm start -- --port ${port + 10}\n`,
    );
    const variables = { TEXTGATE_PORT: '0', TEXTGATE_ADMIN_PORT: String(adminPort) };
    const withUpstream = { ...variables, TEXTGATE_UPSTREAM_URL: 'http://127.0.0.1:1/v1' };
    expect(await failing(['serve'], undefined, withUpstream)).toContain(
      `\n  npm start -- --upstream http://127.0.0.1:1/v1 --admin-port ${adminPort + 10}\n`,
    );
    const withSecret = { ...variables, TEXTGATE_UPSTREAM_URL: 'http://127.0.0.1:1/v1?key=secret' };
    expect(await failing(['serve'], undefined, withSecret)).not.toContain('secret');
    const folder = folderWith(config.replace('{ port: 0 }', `{ port: ${port} }`));
    expect(await failing(['serve', '--config', 'textgate.yaml'], folder, {})).toContain(
      `\n  npm start -- --config textgate.yaml --port ${port + 10}\n`,
    );
  });

  test('because both listeners would have one port says so before it takes it', async () => {
    const folder = makeTemporaryFolder();
    const options = ['serve', '--port', '8080', '--admin-port', '8080'];
    const { code, stderr } = await runCommand(options, folder, freePorts);
    expect([code, stderr]).toEqual([
      1,
      "the command line can't be used:\n" +
        '  - --admin-port: the same port as that of the listener for clients: write another one, such as 8081\n',
    ]);
  });

  test('because of its address says which setting is wrong', async () => {
    expect((await failing(['--host', '192.0.2.1', '--port', '0'])).replaceAll('\n  ', ' ')).toContain(
      'server.host: this machine has no address 192.0.2.1. Use one of its own, or 0.0.0.0',
    );
    expect(await failing(['--admin-host', 'nosuch.invalid'])).toContain(
      'admin.host: no address is known for nosuch.invalid. Write an IP address',
    );
  });

  test('because of a file that it can’t use says so in a sentence', async () => {
    const folder = makeTemporaryFolder();
    writeFileSync(join(folder, 'data'), '');
    expect((await failing(['serve'], folder)).replaceAll('\n  ', ' ')).toBe(
      "textgate can't start: data: there is a file or folder of this name (mkdir). Run textgate in a folder where it can write\n",
    );
  });

  test('because of a second process on its database names that process and what to do, and nothing else', async () => {
    const folder = makeTemporaryFolder();
    const first = serveHere(['serve'], folder, freePorts);
    await first.printed(/textgate serves/);
    const { code, stdout, stderr } = await startTextgate(['serve'], folder, freePorts).finished;
    // Other systems than Linux don't say which process has a lock.
    const id = process.platform === 'linux' ? ` (process id ${process.pid})` : '';
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr.replaceAll(/\n +/g, ' ')).toBe(
      `textgate can't start: the database ${join(folder, 'data', 'textgate.db')} can't be opened: another textgate process is ` +
        `using it${id}. Stop that process, or set another storage.url\n`,
    );
    for (const line of stderr.split('\n')) expect(line.length).toBeLessThanOrEqual(100);
  });
});

describe('SIGTERM during the start', () => {
  test('ends it before the program is loaded', async () => {
    const hook = `import { registerHooks } from 'node:module';
      const hooks = registerHooks({ load(url, context, next) {
        if (url.endsWith('/cli/program.ts')) {
          process.kill(process.pid, 'SIGTERM');
          // With a hook, no module is taken from the cache of compiled ones.
          hooks.deregister();
        }
        return next(url, context);
      } });`;
    const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(hook)}`;
    // The module has its name in the sources alone.
    const program = join(import.meta.dirname, '..', '..', 'src', 'main.ts');
    const environment = { ...freePorts, NODE_OPTIONS };
    const server = startTextgate(['--port', '0'], makeTemporaryFolder(), environment, { program });
    const { code, stdout } = await server.finished;
    expect([code, stdout]).toEqual([0, '']);
  });

  test.each([
    [['serve'], true],
    [['serve', '--port', '0'], true],
    [['--port', '0'], true],
    [['--help'], false],
    [['-V'], false],
    [['keys', 'list'], false],
    [[''], false],
    [[], true],
  ])('is waited for with the arguments %j: %s', (args, waits) => {
    expect(isServing(args)).toBe(waits);
  });

  test.each([
    ['before the database is opened', join('data', 'admin-token')],
    ['while the database is opened', join('data', 'textgate.db-owner')],
  ])('%s ends it quietly, with exit code 0', async (_when, file) => {
    const folder = makeTemporaryFolder();
    const server = startTextgate(['serve'], folder, freePorts);
    await eventually(`there is ${file}`, () => existsSync(join(folder, file)));
    server.signal('SIGTERM');
    const { code, stdout, stderr } = await server.finished;
    expect([code, stdout]).toEqual([0, '']);
    expect(stderr).toMatch(/^(textgate: shutting down; waiting for requests in progress\n)?$/);
  });
});

describe('server.shutdownDelay', () => {
  const delayed = (delay: string) => config.replace('{ port: 0 }', `{ port: 0, shutdownDelay: ${delay} }`);

  test('keeps a process serving after SIGTERM, which is not ready; a second signal ends it at once', async () => {
    const server = startTextgate(['serve', '--config', 'textgate.yaml'], folderWith(delayed('1h')));
    const [, url, adminUrl] = await server.printed(/serves (\S+)\/v1 \(admin: (\S+)\)/);
    const [, key] = await server.printed(/(sk-tg-\S+)/);
    server.signal('SIGTERM');
    await server.printed(/textgate: shutting down in 1h; requests are taken until then\n/);
    expect((await fetch(`${adminUrl}/readyz`)).status).toBe(503);
    expect((await fetch(`${url}/readyz`)).status).toBe(503);
    const models = await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
    expect(models.status).toBe(200);
    await signalAgain(server);
    expect((await server.finished).code).toBe(1);
  });

  test('is followed by the drain, and may come from a variable', async () => {
    const server = serveHere(['serve'], makeTemporaryFolder(), {
      ...freePorts,
      TEXTGATE_SHUTDOWN_DELAY: '100ms',
    });
    await server.printed(/textgate serves/);
    server.signal('SIGTERM');
    const { code, stderr } = await server.finished;
    expect(code).toBe(0);
    expect(stderr).toMatch(
      /shutting down in 100ms; .*\n[^]*shutting down; waiting for requests in progress\n$/,
    );
  });
});

test('a reload names the settings that count from the next start on', async () => {
  const folder = folderWith(config);
  const server = serveHere(['serve', '--config', 'textgate.yaml'], folder);
  await server.printed(/textgate serves/);
  writeFileSync(
    join(folder, 'textgate.yaml'),
    config
      .replace('server: { port: 0 }', 'server: { port: 4711, host: 0.0.0.0 }')
      .replace('admin: { port: 0 }', 'admin: { port: 4712 }'),
  );
  server.signal('SIGHUP');
  await server.printed(/config reloaded: .*\n/);
  expect(server.errors()).toContain(
    'config reloaded: textgate.yaml; these changes count from the next start on: server.host, server.port, admin.port\n',
  );
});

test('workers on a SQLite database whose URL is in a file are refused', async () => {
  const folder = makeTemporaryFolder();
  writeFileSync(join(folder, 'url'), 'sqlite:data/textgate.db');
  const ofWorkers = {
    server: { port: 0, workers: 2 },
    admin: { port: 0 },
    storage: { url: { file: 'url' } },
    upstreams: { demo: { url: 'demo:' } },
    models: { from: 'demo' },
  };
  writeFileSync(join(folder, 'textgate.yaml'), JSON.stringify(ofWorkers));
  const { code, stderr } = await runCommand(['serve', '--config', 'textgate.yaml'], folder);
  expect(code).toBe(1);
  expect(stderr).toContain('server.workers: several workers need a PostgreSQL database');
});

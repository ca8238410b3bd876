import { existsSync, mkdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { adminTokenPlace } from '../../src/config/admin-token.ts';
import { adminTokenOf } from '../../src/cli/serve/own-admin-token.ts';
import { checkConfig } from '../../src/config/load.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { runCommand } from '../support/run-command.ts';
import { serveHere } from '../support/serve-here.ts';
import { freePorts } from '../support/textgate-process.ts';

const postgres = 'postgres://gateway@127.0.0.1:5432/textgate';

describe('a generated admin token', () => {
  test.each([
    [{ databaseUrl: 'sqlite:data/textgate.db' }, 'data/admin-token'],
    [{ databaseUrl: 'sqlite:/var/lib/tg/x.db', configFile: '/etc/tg/c.yaml' }, '/var/lib/tg/admin-token'],
    [{ databaseUrl: 'sqlite:x.db' }, 'admin-token'],
    [{ databaseUrl: 'sqlite::memory:' }, 'data/admin-token'],
    [{ databaseUrl: 'sqlite::memory:', configFile: '/etc/tg/c.yaml' }, '/etc/tg/admin-token'],
    [{ databaseUrl: postgres, configFile: '/etc/tg/c.yaml' }, '/etc/tg/admin-token'],
    [{ databaseUrl: postgres }, null],
    [{ databaseUrl: postgres, tokenFolder: '/srv/shared' }, '/srv/shared/admin-token'],
    [{ databaseUrl: 'sqlite:data/x.db', tokenFolder: 'secrets' }, 'secrets/admin-token'],
  ])('of %j is in %s', (settings, place) => {
    expect(adminTokenPlace({ tokenFolder: undefined, configFile: undefined, ...settings })).toBe(place);
  });

  test('is beside the database that a link leads to, before and after the first start makes it', () => {
    const folder = realpathSync(makeTemporaryFolder());
    mkdirSync(join(folder, 'real'));
    symlinkSync(join(folder, 'real', 'x.db'), join(folder, 'link.db'));
    const databaseUrl = `sqlite:${join(folder, 'link.db')}`;
    const place = (): string | null =>
      adminTokenPlace({ tokenFolder: undefined, configFile: undefined, databaseUrl });
    expect(place()).toBe(join(folder, 'real', 'admin-token'));
    writeFileSync(join(folder, 'real', 'x.db'), '');
    expect(place()).toBe(join(folder, 'real', 'admin-token'));
  });

  test('is another one for each of two gateways of one folder, and the start and the commands know where', async () => {
    const folder = makeTemporaryFolder();
    mkdirSync(join(folder, 'data'));
    writeFileSync(join(folder, 'data', 'admin-token'), 'a-token-of-an-earlier-version\n', { mode: 0o600 });
    const tokens = new Set<string>();
    for (const name of ['one', 'two']) {
      const storage = { TEXTGATE_STORAGE_URL: `sqlite:${name}/textgate.db` };
      const server = serveHere(['serve'], folder, { ...freePorts, ...storage });
      const [, admin = ''] = await server.printed(/\(admin: (\S+)\)/);
      await server.printed(new RegExp(`log in with the token in ${name}/admin-token`));
      expect(server.errors()).toContain(
        `data/admin-token, where earlier versions kept the admin token, is not read`,
      );
      const variables = { TEXTGATE_ADMIN_URL: admin, ...storage };
      expect((await runCommand(['keys', 'list'], folder, variables)).code).toBe(0);
      tokens.add(readFileSync(join(folder, name, 'admin-token'), 'utf8'));
    }
    expect(tokens.size).toBe(2);
  });

  test('is found by a command that knows the config file of a gateway elsewhere', async () => {
    const [folder, elsewhere] = [makeTemporaryFolder(), makeTemporaryFolder()];
    const file = join(folder, 'textgate.yaml');
    const config = {
      server: { port: 0 },
      admin: { port: 0, tokenFolder: join(folder, 'secrets') },
      storage: { url: `sqlite:${join(folder, 'textgate.db')}` },
      upstreams: { demo: { url: 'demo:' } },
      models: { from: 'demo' },
    };
    writeFileSync(file, JSON.stringify(config));
    const server = serveHere(['serve', '--config', file], elsewhere);
    const [, admin = ''] = await server.printed(/\(admin: (\S+)\)/);
    expect(existsSync(join(folder, 'secrets', 'admin-token'))).toBe(true);
    const known = { TEXTGATE_ADMIN_URL: admin, TEXTGATE_CONFIG: file };
    expect((await runCommand(['keys', 'list'], elsewhere, known)).code).toBe(0);
    const unknown = await runCommand(['keys', 'list'], elsewhere, { TEXTGATE_ADMIN_URL: admin });
    expect([unknown.code, unknown.stderr]).toEqual([
      1,
      'textgate: no admin token in data/admin-token: set TEXTGATE_ADMIN_TOKEN to it, or TEXTGATE_CONFIG to the config file of the gateway, whose start says where the token is\n',
    ]);
  });

  test('that is no file that can be read fails a command with what to do', async () => {
    const folder = makeTemporaryFolder();
    mkdirSync(join(folder, 'data', 'admin-token'), { recursive: true });
    const { code, stderr } = await runCommand(['keys', 'list'], folder, {});
    expect([code, stderr]).toEqual([
      1,
      "textgate: the admin token in data/admin-token can't be read (EISDIR): give the user of this process access to it, or set TEXTGATE_ADMIN_TOKEN\n",
    ]);
  });

  const sharedConfig = (folder: string) =>
    checkConfig(
      {
        storage: { url: postgres },
        admin: { tokenFolder: folder },
        upstreams: { demo: { url: 'demo:' } },
        models: { from: 'demo' },
      },
      'the test',
    );

  test('in a folder that nodes share is made once, and nothing is said of other nodes', () => {
    const folder = makeTemporaryFolder();
    const notices: string[] = [];
    // A gateway that was started in this checkout has left a token there, of which one is told.
    const ofNodes = () => notices.filter((notice) => !notice.startsWith('data/admin-token, '));
    onTestFinished(() => expect(ofNodes()).toEqual([]));
    const start = () => adminTokenOf(sharedConfig(folder), undefined, (line) => void notices.push(line));
    const first = start();
    expect(first).toEqual({ token: expect.stringMatching(/^.{43}$/), file: join(folder, 'admin-token') });
    expect(start()).toEqual(first);
  });

  test('is not made for PostgreSQL where no folder is known', () => {
    const notices: string[] = [];
    const { admin, ...config } = sharedConfig('x');
    const { tokenFolder: _folder, ...others } = admin;
    expect(adminTokenOf({ ...config, admin: others }, undefined, (line) => void notices.push(line))).toEqual({
      token: null,
      file: null,
    });
    expect(notices).toEqual([
      expect.stringMatching(/^no admin token: \/admin refuses all calls\. Give all nodes/),
    ]);
  });
});

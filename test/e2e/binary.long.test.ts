import { cpSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { buildBundle } from '../support/bundle.ts';
import { playProvider } from '../support/examine.ts';
import { startUpstream } from '../support/scripted-upstream.ts';
import { testShippedProgram } from '../support/shipped-program.ts';
import { testShippedWorkers } from '../support/shipped-workers.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { freePorts, startTextgate } from '../support/textgate-process.ts';
import type { Finished } from '../support/textgate-process.ts';

/** How long making the executable may take, in milliseconds: Node reads and writes 160 MB. */
const buildMs = 120_000;

let place: string;
let program: string;
beforeAll(async () => {
  const bundle = await buildBundle();
  place = mkdtempSync(join(tmpdir(), 'textgate-binary-'));
  program = join(place, 'textgate');
  cpSync(bundle.makeBinary(), program);
  // All that it reads has to be in it.
  bundle.remove();
}, buildMs);
afterAll(() => rmSync(place, { recursive: true, force: true }));

/** Runs a command of the executable where no Node can be found. */
function run(args: readonly string[], folder = makeTemporaryFolder()): Promise<Finished> {
  return startTextgate(args, folder, { PATH: '' }, { program }).finished;
}

describe('the executable', () => {
  testShippedProgram(() => program);
  testShippedWorkers(() => program);

  test('serves the demo without arguments, and its commands talk to it', async () => {
    const folder = makeTemporaryFolder();
    const server = startTextgate([], folder, { PATH: '', ...freePorts }, { program });
    const [, url = '', adminUrl = ''] = await server.printed(/serves (\S+)\/v1 \(admin: (\S+)\)/);
    const [, key = ''] = await server.printed(/ (sk-tg-\S+)\n/);
    const command = (...args: readonly string[]): Promise<Finished> =>
      startTextgate(args, folder, { PATH: '', TEXTGATE_ADMIN_URL: adminUrl }, { program }).finished;
    const said = await command('say', '--url', url, '--key', key, 'hello');
    expect(said).toMatchObject({ code: 0, stdout: expect.stringMatching(/\w/) as string });
    const examined = await command('doctor');
    expect(examined).toMatchObject({ code: 0, stdout: expect.stringContaining('chat.stream') as string });
    // The names of commands in what it prints are its own, not those of a checkout.
    expect(server.output()).toContain('textgate say');
    expect(server.output()).not.toContain('npm run');
    expect(await command('backup', 'backup.db')).toMatchObject({ code: 0, stderr: '' });
    expect(existsSync(join(folder, 'backup.db'))).toBe(true);
    server.signal('SIGTERM');
    expect((await server.finished).code).toBe(0);
  });

  test('writes its files to the folder in which it is run, and no other', async () => {
    const folder = makeTemporaryFolder();
    const server = startTextgate(['serve'], folder, { PATH: '', ...freePorts }, { program });
    await server.printed(/ serves /);
    server.signal('SIGTERM');
    await server.finished;
    expect(readdirSync(folder)).toEqual(['data']);
    expect(readdirSync(place)).toEqual(['textgate']);
  });

  test('says its version and its help', async () => {
    expect(await run(['--version'])).toMatchObject({
      code: 0,
      stdout: `${packageJson.version}\n`,
      stderr: '',
    });
    expect((await run(['keys', '--help'])).stdout).toMatch(/^Usage: textgate keys /);
    expect(await run(['nonsense'])).toMatchObject({ code: 1, stdout: '' });
  });

  test('checks a config, with prices of the list', async () => {
    const folder = makeTemporaryFolder();
    const write = (price: string): void =>
      writeFileSync(
        join(folder, 'textgate.yaml'),
        `upstreams: { o: { url: https://api.openai.com/v1 } }\nmodels: { small: { routes: [{ upstream: o, model: gpt-4o-mini }], price: ${price} } }\n`,
      );
    write('list');
    expect(await run(['config', 'check', 'textgate.yaml'], folder)).toMatchObject({ code: 0, stderr: '' });
    write('{ list: openai/gpt-4o-minu }');
    const refused = await run(['config', 'check', 'textgate.yaml'], folder);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain('it has gpt-4o-mini,');
  });

  test('writes a config for an upstream that it examines', async () => {
    const upstream = await startUpstream();
    onTestFinished(() => upstream.close());
    playProvider(upstream);
    const folder = makeTemporaryFolder();
    const made = await run(['init', '--upstream', upstream.url, '--model', 'tiny'], folder);
    expect(made).toMatchObject({ code: 0, stdout: expect.stringContaining('chat.stream') as string });
    expect(await run(['config', 'check', 'textgate.yaml'], folder)).toMatchObject({ code: 0, stderr: '' });
  });

  test('refuses a config with a fault, and writes nothing', async () => {
    const folder = makeTemporaryFolder();
    writeFileSync(join(folder, 'textgate.yaml'), 'upstreams: { o: { url: 7 } }\nmodels: {}\n');
    const refused = await run(['serve', '--config', 'textgate.yaml'], folder);
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toContain('upstreams.o.url');
    expect(readdirSync(folder)).toEqual(['textgate.yaml']);
  });
});

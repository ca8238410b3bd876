import { readFileSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { init } from '../../../src/cli/init/init.ts';
import type { InitOptions, InitPorts } from '../../../src/cli/init/init.ts';
import { notFound, playProvider } from '../../support/examine.ts';
import { freePort } from '../../support/free-port.ts';
import { startAtTerminal, terminalAbsence } from '../../support/pseudo-terminal.ts';
import { runCommand } from '../../support/run-command.ts';
import { sendJson, startUpstream } from '../../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../../support/scripted-upstream.ts';
import { serveHere } from '../../support/serve-here.ts';
import { makeTemporaryFolder } from '../../support/temporary-folder.ts';

let upstream: ScriptedUpstream;
let other: ScriptedUpstream;
beforeAll(async () => {
  upstream = await startUpstream();
  other = await startUpstream();
});
afterAll(() => Promise.all([upstream.close(), other.close()]));

const key = 'sk-provider-0123456789abcdef';

function textOf(folder: string, file = 'textgate.yaml'): string {
  return readFileSync(join(folder, file), 'utf8');
}

describe('textgate init', () => {
  test('writes a config for the upstream at a URL, checks it, and says what comes next', async () => {
    playProvider(upstream);
    const folder = makeTemporaryFolder();
    const { code, stdout, stderr } = await runCommand(
      ['init', '--upstream', upstream.url, '--price', 'openai/gpt-4o-mini'],
      folder,
    );
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/^textgate\.yaml is written: 1 model of local\n/);
    expect(stdout).toMatch(/^ {2}ok {7}chat\.stream {9}finish reason stop/m);
    expect(stdout).toMatch(
      /\nNext:\n.* serve textgate\.yaml\n.* keys create bob --balance 5\.00\n.* say "Say hello"\n$/,
    );
    expect((await runCommand(['config', 'check', 'textgate.yaml'], folder)).stdout).toBe(
      'textgate.yaml is valid\n',
    );
  });

  test('writes a config with which the gateway answers, and charges the price of the list', async () => {
    playProvider(upstream);
    const folder = makeTemporaryFolder();
    await runCommand(['init', '--upstream', upstream.url, '--price', 'openai/gpt-4o-mini'], folder);
    const gateway = serveHere(['serve', 'textgate.yaml', '--port', '0', '--admin-port', '0'], folder);
    const [, url = ''] = await gateway.printed(/textgate serves (\S+)\/v1/);
    const [secret = ''] = await gateway.printed(/sk-tg-\S+/);
    const answer = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'tiny', messages: [{ role: 'user', content: 'Hi' }] }),
    });
    expect(await answer.json()).toMatchObject({ choices: [{ message: { content: 'Hi there' } }] });
    // 3 tokens of input at $0.15 a million, and 2 of output at $0.60.
    expect(answer.headers.get('x-textgate-charge')).toContain('0.00000165');
    gateway.signal('SIGTERM');
    await gateway.finished;
  });

  test('never replaces a file, unless it is told to, and leaves no other one behind', async () => {
    playProvider(upstream);
    const folder = makeTemporaryFolder();
    writeFileSync(join(folder, 'textgate.yaml'), 'mine');
    const asked = upstream.seen.length;
    const refused = await runCommand(['init', '--upstream', upstream.url], folder);
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toBe(
      'textgate: textgate.yaml is there already: name another file with --output, or replace it with --force\n',
    );
    expect([textOf(folder), upstream.seen.length]).toEqual(['mine', asked]);
    const replaced = await runCommand(['init', '--upstream', upstream.url, '--force'], folder);
    expect(replaced.code).toBe(0);
    expect(textOf(folder)).toContain('tiny');
    // A link stays one: what it leads to is replaced.
    const linked = makeTemporaryFolder();
    symlinkSync(join(folder, 'textgate.yaml'), join(linked, 'textgate.yaml'));
    writeFileSync(join(folder, 'textgate.yaml'), 'mine');
    await runCommand(['init', '--upstream', upstream.url, '--force'], linked);
    expect(textOf(folder)).toContain('tiny');
    const elsewhere = await runCommand(
      ['init', '--upstream', upstream.url, '--output', 'no/such/folder.yaml'],
      folder,
    );
    expect(elsewhere.stderr).toContain(
      'the folder no/such is not there: create it, or name another file with --output',
    );
    expect(readdirSync(folder)).toEqual(['textgate.yaml']);
  });

  test('writes the name of the variable with a key, and never the key', async () => {
    playProvider(upstream);
    const folder = makeTemporaryFolder();
    const named = ['init', '--upstream', upstream.url, '--api-key-env', 'MY_KEY'];
    const unset = await runCommand(named, folder);
    expect(unset).toMatchObject({
      code: 1,
      stderr: 'textgate: --api-key-env: the environment variable MY_KEY is not set\n',
    });
    const { code, stdout, stderr } = await runCommand(named, folder, { MY_KEY: key });
    expect(code).toBe(0);
    expect(upstream.seen.at(-1)?.headers['authorization']).toBe(`Bearer ${key}`);
    expect(textOf(folder)).toContain('apiKey: "${MY_KEY}"');
    expect(textOf(folder) + stdout + stderr).not.toContain(key);
    for (const place of [`?api_key=${key}`, `/${key}`, `?v=${key}`])
      expect(
        (await runCommand(['init', '--upstream', upstream.url + place, '--output', 'b.yaml'], folder)).stderr,
      ).toBe(
        'textgate: --upstream: a key in the URL would stand in the file: put it into a variable, and name that with --api-key-env\n',
      );
  });

  test.each([
    ['HTML', 'text/html', '<html>Welcome</html>'],
    ['an empty list', 'application/json', '{"data":[]}'],
    ['a list of more than 1 MiB', 'application/json', `{"data":[${'1,'.repeat(600_000)}`],
  ])('writes nothing where the upstream answers %s', async (_what, type, body) => {
    playProvider(upstream, {
      models: (response) => void response.writeHead(200, { 'content-type': type }).end(body),
    });
    const folder = makeTemporaryFolder();
    const { code, stdout, stderr } = await runCommand(['init', '--upstream', upstream.url], folder);
    expect([code, stdout, readdirSync(folder)]).toEqual([1, '', []]);
    expect(stderr).toMatch(/^textgate: .+\nIf it has no list of models, name one with --model\.\n$/);
  });

  test('writes nothing where no model of the list answers with text', async () => {
    playProvider(upstream, {
      models: (response) => sendJson(response, 200, '{"data":[{"id":"nomic-embed-text"}]}'),
    });
    const { code, stderr } = await runCommand(['init', '--upstream', upstream.url]);
    const message = 'no model that is listed seems to answer with text: name one with --model';
    expect([code, stderr]).toEqual([1, `textgate: ${message}\n`]);
  });

  test('takes the names of models where the upstream has no list', async () => {
    playProvider(upstream, { models: (response) => sendJson(response, 404, notFound) });
    const folder = makeTemporaryFolder();
    const { code } = await runCommand(
      ['init', '--upstream', upstream.url, '--model', 'tiny', '--model', 'tiny', '--model', 'large'],
      folder,
    );
    expect(code).toBe(0);
    expect(textOf(folder)).toMatch(/\n {2}tiny: .*\n {2}large: /);
  });

  test('exits with 1 where a check finds a fault, with the file and the advice', async () => {
    playProvider(upstream, { stream: (response) => sendJson(response, 500, notFound) });
    const folder = makeTemporaryFolder();
    const { code, stdout } = await runCommand(['init', '--upstream', upstream.url], folder);
    expect(code).toBe(1);
    expect(stdout).toMatch(/ {2}fault {4}chat\.stream/);
    expect(textOf(folder)).toContain('tiny');
  });

  test.each([
    ['foo', '--upstream: expected an address such as http://127.0.0.1:8000/v1'],
    ['http://user:pw@127.0.0.1:1/v1', '--upstream: expected an address without a user and password'],
    [
      'https://api.openai.com/v1',
      'the variable OPENAI_API_KEY: the environment variable OPENAI_API_KEY is not set',
    ],
  ])('says what is wrong with %s', async (url, message) => {
    const { code, stderr } = await runCommand(['init', '--upstream', url]);
    expect([code, stderr]).toEqual([1, expect.stringContaining(`textgate: ${message}`)]);
  });
});

describe('textgate init without the URL of an upstream', () => {
  afterEach(() => {
    // As a process begins: other tests see it.
    process.exitCode = undefined;
    vi.restoreAllMocks();
  });

  /** Runs it with two servers of one's own, and one that is not there. */
  async function find(options: Partial<InitOptions>, ports: Partial<InitPorts> = {}) {
    vi.spyOn(console, 'log').mockReturnValue();
    const errors = vi.spyOn(console, 'error').mockReturnValue();
    const output = join(makeTemporaryFolder(), 'textgate.yaml');
    const at = (name: string, url: string) => ({ name, line: { url }, foundBy: url });
    const absent = `http://127.0.0.1:${await freePort()}/v1`;
    const local = [at('one', upstream.url), at('absent', absent), at('two', other.url)];
    await init({ output, model: [], ...options }, { environment: {}, ask: null, local, ...ports });
    return { text: readFileSync(output, 'utf8'), errors: errors.mock.calls.flat().join('\n') };
  }

  test('takes all that it finds where there is no terminal, and says which providers were left out', async () => {
    playProvider(upstream);
    playProvider(other);
    const environment = { TEXTGATE_UPSTREAM_URL: 'http://127.0.0.1:1/v1' };
    const { text, errors } = await find({}, { environment });
    expect(text).toMatch(/\n {2}one: \{.*\n {2}two: \{/);
    expect(text).toMatch(/\n {2}tiny: \{.*upstream: one.*\n {2}two\/tiny: \{.*upstream: two/);
    expect(errors).toBe(
      'left out: local (TEXTGATE_UPSTREAM_URL): GET http://127.0.0.1:1/v1/models: connection refused. Start the server, or correct the host and port of TEXTGATE_UPSTREAM_URL (in a container, 127.0.0.1 is the container itself).',
    );
  });

  test('asks which are wanted on a terminal, until the answer is one', async () => {
    playProvider(upstream);
    playProvider(other);
    const asked: string[] = [];
    const answers = ['3', 'x', '2'];
    const ask = async (question: string) => {
      asked.push(question);
      return answers.shift() ?? '';
    };
    const { text } = await find({}, { ask });
    expect(asked).toHaveLength(3);
    expect(asked[0]).toContain(`  1  one (${upstream.url})\n  2  two (${other.url})\n`);
    expect(text).toContain('  two: {');
    expect(text).not.toContain('  one: {');
  });

  test('says what to do where nothing is found, and asks on a terminal', async () => {
    await expect(find({}, { local: [] })).rejects.toThrow(
      'no upstream was found: no variable has a provider',
    );
    playProvider(upstream);
    const answers = [upstream.url, ''];
    const { text } = await find({}, { local: [], ask: async () => answers.shift() ?? '' });
    expect(text).toContain(`local: { url: ${upstream.url} }`);
  });

  test('refuses a URL with a key in it wherever it comes from, and quotes no key that was given for a variable', async () => {
    const url = `${upstream.url}?api_key=${key}`;
    const said = (work: Promise<unknown>): Promise<string> => work.then(() => 'written', String);
    expect(await said(find({}, { environment: { TEXTGATE_UPSTREAM_URL: url } }))).toBe(
      'Error: TEXTGATE_UPSTREAM_URL: a key in the URL would stand in the file: put it into a variable, and name that with --api-key-env',
    );
    const ask = (answers: string[]) => ({ local: [], ask: async () => answers.shift() ?? '' });
    expect(await said(find({}, ask([url, ''])))).toMatch(/^Error: the URL: a key in the URL/);
    for (const given of [
      find({}, ask([upstream.url, key])),
      find({ upstream: upstream.url, apiKeyEnv: key }),
    ]) {
      const message = await said(given);
      expect(message).toContain('--api-key-env: ');
      expect(message).not.toContain(key);
    }
  });

  test('takes no names of models for several upstreams', async () => {
    playProvider(upstream);
    playProvider(other);
    await expect(find({ model: ['tiny'] })).rejects.toThrow(
      '--model goes with one upstream: name it with --upstream',
    );
  });

  test.skipIf(terminalAbsence !== null)(
    `writes nothing when its question is cancelled (${terminalAbsence ?? 'at a pseudo-terminal'})`,
    async () => {
      const output = join(makeTemporaryFolder(), 'textgate.yaml');
      playProvider(upstream);
      const environment = {
        TEXTGATE_UPSTREAM_URL: upstream.url,
        OPENAI_BASE_URL: upstream.url,
        OPENAI_API_KEY: key,
      };
      const terminal = startAtTerminal(['init', '--output', output], { rows: 30, columns: 100 }, environment);
      await terminal.shows(/Which of them\?/);
      terminal.type('\u0004');
      expect(await terminal.finished).toMatchObject({ code: 1 });
      expect(terminal.output()).toContain('cancelled: nothing was written');
    },
  );
});

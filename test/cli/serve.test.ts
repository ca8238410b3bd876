import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { startUpstream } from '../support/scripted-upstream.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { runCommand } from '../support/run-command.ts';
import { serveHere } from '../support/serve-here.ts';
import { freePorts, startTextgate } from '../support/textgate-process.ts';

const run = promisify(execFile);

const literal = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);

describe('textgate serve without a config', () => {
  test('prints a first key once, and a curl command that streams an answer', async () => {
    const folder = makeTemporaryFolder();
    const first = serveHere(['serve'], folder, freePorts);
    const [, curl = ''] = await first.printed(/^ {2}(curl .*)$/m);
    await first.printed(/export OPENAI_API_KEY=sk-tg-.*\n/);
    const { stdout } = await run('bash', ['-c', `${curl} --silent`]);
    expect(stdout).toContain('"role":"assistant"');
    expect(stdout).toMatch(/data: \[DONE\]\n\n$/);
    expect(statSync(join(folder, 'data', 'admin-token')).mode & 0o777).toBe(0o600);
    expect(statSync(join(folder, 'data', 'textgate.db')).mode & 0o777).toBe(0o600);
    expect(statSync(join(folder, 'data', 'textgate.db-wal')).mode & 0o777).toBe(0o600);
    expect(statSync(join(folder, 'data', 'textgate.db-owner')).mode & 0o777).toBe(0o600);
    first.signal('SIGTERM');
    expect((await first.finished).code).toBe(0);

    const second = serveHere(['serve'], folder, freePorts);
    await second.printed(
      /create another key with:\s+TEXTGATE_ADMIN_URL=http:\S+ npm run textgate -- keys create <name>/,
    );
    expect(second.output()).not.toContain('sk-tg-');
  });

  test('prints two OPENAI variables that point the official client at the gateway', async () => {
    const server = serveHere(['serve'], makeTemporaryFolder(), freePorts);
    const [, baseURL = '', apiKey = ''] = await server.printed(
      /export OPENAI_BASE_URL=(\S+)\n\s*export OPENAI_API_KEY=(\S+)/,
    );
    const { default: OpenAI } = await import('openai');
    const response = await new OpenAI({ baseURL, apiKey }).responses.create({ model: 'demo', input: 'ping' });
    expect(response.output_text).toContain('You wrote: "ping"');
  });

  test('completes a running stream on SIGTERM, and exits with 0', async () => {
    const server = startTextgate(['serve'], makeTemporaryFolder(), freePorts);
    const [, url = '', key = ''] = await server.printed(/BASE_URL=(\S+)\n\s*export OPENAI_API_KEY=(\S+)/);
    const response = await fetch(`${url}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: '{"model":"demo","stream":true,"messages":[{"role":"user","content":"x"}]}',
    });
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = (await reader?.read())?.value ?? '';
    server.signal('SIGTERM');
    for (let part = await reader?.read(); part?.done === false; part = await reader?.read())
      text += part.value;
    expect(text).toMatch(/data: \[DONE\]\n\n$/);
    expect((await server.finished).code).toBe(0);
  });
});

describe('textgate serve with an upstream from the environment', () => {
  test('offers the models that the upstream lists, and prints a curl command with one of them', async () => {
    const upstream = await startUpstream();
    upstream.play((response) => void response.end('{"data":[{"id":"org/model-7"}]}'));
    const environment = {
      ...freePorts,
      TEXTGATE_UPSTREAM_URL: upstream.url,
      TEXTGATE_UPSTREAM_API_KEY: 'sk-up',
    };
    const server = serveHere(['serve'], makeTemporaryFolder(), environment);
    await server.printed(/curl .*"model":"org\/model-7"/);
    await server.printed(new RegExp(`^models: 1 of ${new URL(upstream.url).host}$`, 'm'));
    expect(upstream.seen[0]).toMatchObject({ method: 'GET', path: '/v1/models' });
    expect(upstream.seen[0]?.headers.authorization).toBe('Bearer sk-up');
    server.signal('SIGTERM');
    await server.finished;
    await upstream.close();
  });

  test('starts although nothing listens at its address, and says what to do', async () => {
    const upstream = await startUpstream();
    await upstream.close();
    const environment = { ...freePorts, TEXTGATE_UPSTREAM_URL: upstream.url };
    const server = serveHere(['serve'], makeTemporaryFolder(), environment);
    const sentences =
      `GET ${upstream.url}/models: connection refused. Start the server, or correct the host and port of ` +
      'TEXTGATE_UPSTREAM_URL (in a container, 127.0.0.1 is the container itself).';
    const [, adminUrl = ''] = await server.printed(/\(admin: (\S+)\)/);
    await server.printed(/container itself\)\.\n/);
    const { host } = new URL(upstream.url);
    expect(server.errors().replaceAll(/\n +/g, ' ')).toMatch(
      new RegExp(
        `\nmodels: none yet; the list of ${host} is fetched again for later requests ${literal(sentences)}\n$`,
      ),
    );
    expect(server.errors()).not.toContain('curl');
    for (const line of server.errors().split('\n')) expect(line.length).toBeLessThanOrEqual(100);
    expect(await (await fetch(`${adminUrl}/readyz`)).json()).toEqual({
      status: 'not ready',
      reason: `no list of models from the upstream yet: ${sentences}`,
      upstreams: { [host]: { state: 'failing', cause: sentences } },
    });
    const logged = server.output().match(/^\{.*"model discovery failed".*$/gm) ?? [];
    expect(logged.map((line) => JSON.parse(line) as object)).toMatchObject([
      { upstream: host, reason: sentences },
    ]);
    server.signal('SIGTERM');
    expect((await server.finished).code).toBe(0);
  });
});

test('a log for people names once why the models can not be listed, below the greeting', async () => {
  const upstream = await startUpstream();
  await upstream.close();
  const environment = {
    ...freePorts,
    TEXTGATE_UPSTREAM_URL: upstream.url,
    TEXTGATE_LOG_FORMAT: 'text',
  };
  const server = serveHere(['serve'], makeTemporaryFolder(), environment);
  await server.printed(/models: none yet/);
  const output = server.output();
  expect(output.split('connection refused')).toHaveLength(2);
  expect(output.indexOf('ERROR model discovery failed')).toBeGreaterThan(output.indexOf('textgate serves'));
});

describe('textgate serve with a config file', () => {
  const config = `
server: { port: 0 }
admin: { port: 0, token: "\${TOKEN}" }
upstreams: { demo: { url: "demo:" } }
models: { words: { routes: [ { upstream: demo, model: demo } ], free: true } }
`;

  test('prints a first key, as without a config, and manages keys by commands', async () => {
    const folder = makeTemporaryFolder();
    writeFileSync(join(folder, 'textgate.yaml'), config);
    const environment = { TOKEN: 'a-token-from-the-environment' };
    const server = serveHere(['serve', '--config', 'textgate.yaml'], folder, environment);
    const [, url = '', adminUrl = ''] = await server.printed(/serves (\S+) \(admin: (\S+)\)/);
    const [, first = ''] = await server.printed(/This is your first key.*\n {2}(sk-tg-\S+)\n/);
    const own = await fetch(`${url}/key`, { headers: { authorization: `Bearer ${first}` } });
    expect(await own.json()).toMatchObject({ name: 'first key' });

    const cli = { TEXTGATE_ADMIN_URL: adminUrl, TEXTGATE_ADMIN_TOKEN: environment.TOKEN };
    const options = [
      '--concurrency',
      '5',
      '--sampling',
      'strict',
      '--unknown-fields',
      'ignore',
      '--balance',
      '2.5',
    ];
    const made = await runCommand(['keys', 'create', 'bob', ...options], folder, cli);
    expect(made.code).toBe(0);
    const [key = ''] = made.stdout.match(/sk-tg-\S+/) ?? [];
    const models = await fetch(`${url}/models`, { headers: { authorization: `Bearer ${key}` } });
    expect(await models.json()).toMatchObject({ data: [{ id: 'words' }] });

    const listed = await runCommand(['keys', 'list'], folder, cli);
    expect(listed.stdout).toMatch(
      /ID +NAME +CREATED +AT ONCE +PER MIN +BALANCE +SPENT +STATE\nkey_\w{12} +bob +\S+ +5 +60 +2\.50 +0\.00 +active\n/,
    );
    const json = await runCommand(['keys', 'list', '--json'], folder, cli);
    expect(JSON.parse(json.stdout)).toMatchObject([
      { name: 'bob', limits: { concurrency: 5 }, compatibility: { sampling: 'strict' } },
      { name: 'first key' },
    ]);

    const [id = ''] = listed.stdout.match(/key_\w{12}/) ?? [];
    const pay = ['keys', 'credit', id, '1.25', '--reference', 'invoice 7'];
    expect((await runCommand(pay, folder, cli)).stdout).toBe('booked; the balance is 3.75 USD\n');
    expect((await runCommand(pay, folder, cli)).stdout).toBe(
      'already booked earlier; the balance is 3.75 USD\n',
    );

    const textgate = async (...args: string[]) => (await runCommand(args, folder, cli)).stdout;
    expect(await textgate('keys', 'update', id, '--name', 'robert', '--model', 'words')).toContain(
      'is changed',
    );
    expect(await textgate('keys', 'show', id)).toMatch(
      /name +robert\n[^]*models +words\n[^]*balance +3\.75\n/,
    );
    const rotated = await textgate('keys', 'rotate', id, '--grace', '1h');
    expect(rotated).toMatch(/^sk-tg-/);
    expect(rotated).not.toContain(key);
    const asked = await fetch(`${url}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'words', messages: [{ role: 'user', content: 'x' }] }),
    });
    expect(asked.status).toBe(200);
    await asked.text();
    expect(await textgate('records', '--key', id)).toMatch(
      new RegExp(
        `\\n${asked.headers.get('x-request-id')?.slice(-8)} +robert +\\S+ \\S+ +words +completed +1 `,
      ),
    );
    expect(await textgate('records', '--csv')).toMatch(/^request_id,[^]*\nreq_\w+,[^]*words/);
    expect(await textgate('ledger', 'verify')).toBe('the ledger balances: 2 accounts, 1 record\n');
    expect(await textgate('keys', 'revoke', id)).toContain('is revoked');
    expect(await textgate('keys', 'list')).toMatch(/robert .* revoked\n/);

    const wrong = await runCommand(['keys', 'list'], folder, { ...cli, TEXTGATE_ADMIN_TOKEN: 'wrong' });
    expect(wrong).toMatchObject({ code: 1, stdout: '' });
    expect(wrong.stderr).toContain('admin token');
  }, 120_000);

  test('reports all problems of an invalid file at once, and does not start', async () => {
    const folder = makeTemporaryFolder();
    writeFileSync(
      join(folder, 'bad.yaml'),
      config.replace('upstreams', 'upstream').replace('"${TOKEN}"', 'abc'),
    );
    const { code, stderr } = await runCommand(['serve', '--config', 'bad.yaml'], folder);
    expect(code).toBe(1);
    expect(stderr).toContain("upstream: unknown key; did you mean 'upstreams'?");
    expect(stderr).toContain('admin.token');
  });

  test('refuses a damaged database instead of creating an empty one', async () => {
    const folder = makeTemporaryFolder();
    writeFileSync(join(folder, 'broken.db'), 'this is not a database at all, only text');
    writeFileSync(
      join(folder, 'textgate.yaml'),
      `storage: { url: "sqlite:broken.db" }\n${config.replace('"${TOKEN}"', 'a-token-long-enough')}`,
    );
    const { code, stderr } = await runCommand(['serve', '--config', 'textgate.yaml'], folder);
    expect(code).toBe(1);
    expect(stderr).toMatch(/broken\.db\s+can't be opened/);
  });
});

describe('textgate', () => {
  test('reports that the gateway does not answer when none is running', async () => {
    const environment = { TEXTGATE_ADMIN_URL: 'http://127.0.0.1:1', TEXTGATE_ADMIN_TOKEN: 'x' };
    const { code, stderr } = await runCommand(['keys', 'list'], makeTemporaryFolder(), environment);
    expect(code).toBe(1);
    expect(stderr).toContain('does not answer on http://127.0.0.1:1');
  });

  test('reports that another server answers at the admin address', async () => {
    const other = await startUpstream();
    other.play((response) => void response.end('<html>'));
    const environment = { TEXTGATE_ADMIN_URL: other.url, TEXTGATE_ADMIN_TOKEN: 'x' };
    const { code, stderr } = await runCommand(['keys', 'list'], makeTemporaryFolder(), environment);
    expect([code, stderr]).toEqual([
      1,
      `textgate: ${other.url} is not the admin listener of a gateway: set TEXTGATE_ADMIN_URL to its address\n`,
    ]);
    await other.close();
  });

  test('prints help, and suggests a command for a misspelled one', async () => {
    const folder = makeTemporaryFolder();
    expect(await runCommand(['--help'], folder)).toMatchObject({ code: 0 });
    const { code, stderr } = await runCommand(['key'], folder);
    expect(code).toBe(1);
    expect(stderr).toContain('Did you mean keys?');
  });
});

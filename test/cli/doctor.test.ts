import { writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:tls';
import type { TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { runDoctor } from '../../src/cli/doctor.ts';
import { notFound, playProvider, sendEvents, wholeBody } from '../support/examine.ts';
import type { AskedBody } from '../support/examine.ts';
import { chatFrames, sendJson, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { freePort } from '../support/free-port.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { startGateway } from '../support/test-gateway.ts';
import { runCommand } from '../support/run-command.ts';
import { startTextgate } from '../support/textgate-process.ts';
import { startTlsServer } from '../support/tls-server.ts';

let upstream: ScriptedUpstream;
beforeAll(async () => void (upstream = await startUpstream()));
afterAll(() => upstream.close());

/** Runs `textgate doctor` in a folder of its own, with a config file if there is one. */
function run(args: readonly string[], environment: Readonly<Record<string, string>> = {}, config?: string) {
  const folder = makeTemporaryFolder();
  if (config !== undefined) writeFileSync(`${folder}/textgate.yaml`, config);
  return runCommand(['doctor', ...args], folder, environment);
}

const good = chatFrames(['Hi', ' there']).join('');

describe('textgate doctor', () => {
  test('exits with 0 for an upstream at a URL without a fault, and prints lines of at most 100 columns', async () => {
    playProvider(upstream);
    const { code, stdout, stderr } = await run([upstream.url]);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toContain(`${new URL(upstream.url).host}: ${upstream.url}\n`);
    expect(stdout).toMatch(/^ {2}ok {7}chat\.stream {9}finish reason stop, text after \d+ ms, 2 pieces/m);
    expect(stdout).toMatch(/\n1 upstream: 1 ok, 0 with warnings, 0 with faults\n$/);
    expect(Math.max(...stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(100);
  });

  test('exits with 0 for a warning, and with 1 for a fault, and says what to change', async () => {
    playProvider(upstream, {
      stream: (response) => sendEvents(response, good.replace('data: [DONE]\n\n', '')),
    });
    const warned = await run([upstream.url]);
    expect(warned.code).toBe(0);
    expect(warned.stdout).toContain('  warning  chat.stream.missing_done: the stream ends');
    playProvider(upstream, {
      stream: (response) =>
        sendEvents(response, good.replace('"finish_reason":"stop"', '"finish_reason":null')),
    });
    const failed = await run([upstream.url]);
    expect(failed.code).toBe(1);
    expect(failed.stdout).toContain('→ Set finishReason: optional');
  });

  test('checks every upstream of a config, and the routes to it', async () => {
    playProvider(upstream);
    const config = `
upstreams:
  own: { url: "${upstream.url}", apiKey: "\${OWN_KEY}" }
  away: { url: http://nosuch.invalid/v1 }
models:
  small: { routes: [{ upstream: own, model: tinny }, { upstream: away, model: x }], free: true }
`;
    const { code, stdout } = await run(
      ['--config', 'textgate.yaml', '--json'],
      { OWN_KEY: 'k-of-own' },
      config,
    );
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({
      object: 'doctor',
      upstreams: [
        { name: 'own', url: upstream.url, status: 'fault' },
        {
          name: 'away',
          url: 'http://nosuch.invalid/v1',
          status: 'fault',
          checks: [{ id: 'address', status: 'fault' }],
        },
      ],
    });
    expect(upstream.seen.at(-1)?.headers.authorization).toBe('Bearer k-of-own');
  });

  test('reads a key from its file', async () => {
    playProvider(upstream);
    const file = `${makeTemporaryFolder()}/key`;
    writeFileSync(file, 'key-in-a-file\n');
    const config = `
upstreams: { own: { url: "${upstream.url}", apiKey: { file: "${file}" } } }
models: { from: own }
`;
    expect((await run(['--config', 'textgate.yaml'], {}, config)).code).toBe(0);
    expect(upstream.seen.at(-1)?.headers.authorization).toBe('Bearer key-in-a-file');
  });

  test('prints JSON with a stable shape', async () => {
    playProvider(upstream);
    const { stdout } = await run([upstream.url, '--json']);
    const [report] = (JSON.parse(stdout) as { upstreams: { checks: Record<string, unknown>[] }[] }).upstreams;
    expect(Object.keys(report ?? {})).toEqual(['name', 'url', 'status', 'checks']);
    expect(report?.checks.map((check) => [check['id'], check['status']])).toEqual([
      ['address', 'ok'],
      ['connection', 'ok'],
      ['tls', 'skipped'],
      ['models', 'ok'],
      ['key', 'ok'],
      ['chat.whole', 'ok'],
      ['chat.stream', 'ok'],
      ['chat.usage', 'ok'],
      ['chat.length', 'ok'],
      ['chat.stop', 'ok'],
      ['chat.unknown_model', 'ok'],
      ['responses.stream', 'skipped'],
    ]);
    for (const check of report?.checks ?? []) {
      expect(Object.keys(check)).toEqual(['id', 'status', 'detail', 'advice', 'ms']);
      expect(check['ms'] === null || Number.isInteger(check['ms'])).toBe(true);
    }
  });

  test('checks the upstream of the environment, and names its variables', async () => {
    playProvider(upstream, { models: (response) => sendJson(response, 401, '{}') });
    const { code, stdout } = await run([], { TEXTGATE_UPSTREAM_URL: upstream.url });
    expect(code).toBe(1);
    expect(stdout).toContain('→ Set TEXTGATE_UPSTREAM_API_KEY.');
    expect(stdout).toContain('\n1 upstream of TEXTGATE_UPSTREAM_URL: 0 ok');
  });

  test.each<[string, readonly string[], string]>([
    ['the variable of --key-env', ['--key-env', 'MY_KEY'], '→ Correct the variable MY_KEY.'],
    ['--key', ['--key', 'a-wrong-key-for-tests'], '→ Correct --key.'],
    ['the option that is missing', [], '→ Set --key-env.'],
  ])('names where the key of a URL is given: %s', async (_name, options, advice) => {
    playProvider(upstream, { models: (response) => sendJson(response, 401, '{}') });
    const { stdout } = await run([upstream.url, ...options], { MY_KEY: 'another-wrong-key-for-tests' });
    expect(stdout).toContain(advice);
  });

  test('checks the built-in demo where nothing is named and no gateway runs, and says that it was nothing else', async () => {
    const port = String(await freePort());
    const { code, stdout, stderr } = await run([], { TEXTGATE_ADMIN_PORT: port });
    expect(code).toBe(0);
    expect(stdout).toMatch(/^ {2}ok {7}chat\.stop {11}the answer ends before it$/m);
    expect(stdout).toMatch(/\n1 upstream: 1 ok/);
    expect(stderr).toBe(
      `no upstream is named and no gateway answers on http://127.0.0.1:${port}, so the built-in demo was checked, and nothing else: name what to check, as in textgate doctor textgate.yaml\n`,
    );
  });

  test('checks the upstreams of the gateway that runs, where nothing else is named', async () => {
    playProvider(upstream);
    const gateway = await startGateway({ upstreamUrl: upstream.url });
    onTestFinished(() => gateway.close());
    const { hostname, port } = new URL(gateway.adminUrl);
    const address = { TEXTGATE_ADMIN_HOST: hostname, TEXTGATE_ADMIN_PORT: port };
    const environment = { ...address, TEXTGATE_ADMIN_TOKEN: gateway.adminToken };
    const seen = upstream.seen.length;
    const found = await run([], environment);
    expect([found.code, found.stderr]).toEqual([0, '']);
    expect(found.stdout).toMatch(/^local: http:/);
    expect(found.stdout).toContain(`\n1 upstream of the gateway at ${gateway.adminUrl}: 1 ok, 0 with`);
    expect(upstream.seen.length - seen).toBeGreaterThan(5);

    playProvider(upstream, {
      stream: (response) =>
        sendEvents(response, good.replace('"finish_reason":"stop"', '"finish_reason":null')),
    });
    const failed = await run(['--json'], environment);
    expect(failed.code).toBe(1);
    expect(JSON.parse(failed.stdout)).toMatchObject({
      object: 'doctor',
      upstreams: [{ name: 'local', status: 'fault' }],
    });
    // That it runs and can't be asked must not end in a check of something else.
    const untold = await run([], address);
    expect(untold).toMatchObject({ code: 3, stdout: '' });
    expect(untold.stderr).toMatch(/no admin token.*: set TEXTGATE_ADMIN_TOKEN/);
    const [limited, away] = [
      await run(['--timeout', '5s'], environment),
      await run([], { TEXTGATE_ADMIN_URL: 'http://127.0.0.1:1', TEXTGATE_ADMIN_TOKEN: gateway.adminToken }),
    ];
    expect(limited).toMatchObject({ code: 2, stdout: '' });
    expect(away).toMatchObject({ code: 3, stdout: '' });
    expect(away.stderr).toContain('the gateway does not answer on http://127.0.0.1:1');
  });

  test('checks the built-in demo by its URL, and ends', async () => {
    const { code, stdout, stderr } = await run(['demo:']);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/\n1 upstream: 1 ok/);
  });

  test('exits with 3 if it fails itself, which is neither a fault of an upstream nor wrong usage', async () => {
    const printed = vi.spyOn(console, 'error').mockImplementation(() => {});
    const codeBefore = process.exitCode;
    onTestFinished(() => {
      printed.mockRestore();
      process.exitCode = codeBefore;
    });
    await runDoctor('demo:', {}, () => {
      throw new Error('a defect');
    });
    expect(process.exitCode).toBe(3);
    expect(printed.mock.calls).toEqual([['textgate: a defect']]);
  });

  test('accepts a certificate of a known authority, and warns before it ends', async () => {
    playProvider(upstream);
    const server = await startTlsServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        if (request.url === '/v1/models') return sendJson(response, 200, '{"data":[{"id":"tiny"}]}');
        if (request.url !== '/v1/chat/completions') return sendJson(response, 404, '{}');
        const { model, stream } = JSON.parse(Buffer.concat(chunks).toString()) as AskedBody;
        if (model !== 'tiny') sendJson(response, 404, notFound);
        else if (stream === true) sendEvents(response, good);
        else sendJson(response, 200, wholeBody());
      });
    });
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const file = `${makeTemporaryFolder()}/authority.pem`;
    writeFileSync(file, await certificateAt(port));
    // Node reads the variable when a process starts.
    const args = ['doctor', `https://localhost:${port}/v1`];
    const started = startTextgate(args, makeTemporaryFolder(), { NODE_EXTRA_CA_CERTS: file });
    const { code, stdout } = await started.finished;
    expect(stdout).toMatch(/warning {2}tls {17}TLSv1\.3, the certificate ends in [01] days?\n/);
    expect(stdout).toContain('→ Renew the certificate of the server.');
    expect(code).toBe(0);
  });
});

/** The certificate that a server on loopback presents, as PEM. */
async function certificateAt(port: number): Promise<string> {
  const socket = await new Promise<TLSSocket>((resolve) => {
    const opened = connect({ port, host: '127.0.0.1', rejectUnauthorized: false }, () => resolve(opened));
  });
  const encoded = socket.getPeerCertificate().raw.toString('base64');
  socket.destroy();
  return `-----BEGIN CERTIFICATE-----\n${encoded.match(/.{1,64}/g)?.join('\n')}\n-----END CERTIFICATE-----\n`;
}

describe('wrong usage exits with 2 and one line', () => {
  test.each<[string, readonly string[], RegExp]>([
    ['an unknown option', ['--bogus'], /unknown option '--bogus'/],
    [
      'a dialect that does not exist',
      ['http://127.0.0.1:1/v1', '--dialect', 'x'],
      /Allowed choices are chat/,
    ],
    ['a time limit without a unit', ['--timeout', '5'], /a duration such as 30s/],
    ['a dialect that the demo has not', ['demo:', '--dialect', 'gemini'], /--dialect: the built-in demo/],
    ['a URL that is none', ['nowhere'], /the URL: expected an address/],
    ['a link-local URL', ['http://169.254.169.254/v1'], /the URL: a link-local address/],
    [
      'a URL and a config',
      ['http://127.0.0.1:1/v1', '--config', 'textgate.yaml'],
      /either a URL or --config/,
    ],
    ['a key without a URL', ['--key', 'x'], /go with a URL/],
    ['a variable that is not set', ['http://127.0.0.1:1/v1', '--key-env', 'NO_SUCH'], /NO_SUCH is not set/],
    [
      'a key instead of the name of its variable',
      ['http://127.0.0.1:1/v1', '--key-env', 'sk-live-canary7'],
      /--key-env: there is no environment variable of this name: give its name, and not the key itself/,
    ],
    ['a config that is missing', ['--config', 'nosuch.yaml'], /nosuch\.yaml/],
  ])('%s', async (_name, args, message) => {
    const { code, stdout, stderr } = await run(args);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(message);
    expect(stderr).not.toMatch(/ {4}at |canary7/);
  });

  test('--help exits with 0 and says what it costs', async () => {
    const { code, stdout } = await run(['--help']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/a few hundred tokens/);
  });
});

test('no key, header value, query value or text of the upstream stands in any output', async () => {
  const secrets = [
    'sk-canary-of-the-key',
    'canary-of-the-header',
    'canary-of-the-query',
    'canary-of-the-text',
  ];
  const [key = '', header = '', query = '', text = ''] = secrets;
  const config = `
upstreams: { own: { url: "${upstream.url}?api-version=${query}", apiKey: "${key}", headers: { x-org: ${header} } } }
models: { from: own }
`;
  const words = `the key ${key} of ${header} at ${query} is wrong`;
  const error = JSON.stringify({ error: { message: words, code: words, type: words } });
  const list = JSON.stringify({ data: [{ id: `tiny-${key}` }] });
  const answers = [
    (): void => playProvider(upstream),
    (): void => upstream.play((response) => sendJson(response, 401, error)),
    (): void => upstream.play((response) => sendJson(response, 400, error)),
    (): void => upstream.play((response) => sendJson(response, 500, words)),
    (): void =>
      upstream.play((response, { path }) => {
        if (path.includes('models')) return sendJson(response, 200, list);
        sendEvents(response, `${good.replace('Hi', text).replace('"stop"', `"${key}"`)}data: ${error}\n\n`);
      }),
    (): void =>
      upstream.play((response, { path }) => {
        if (path.includes('models')) return sendJson(response, 200, list);
        response.writeHead(200, { 'content-type': `text/${key}` }).end(words);
      }),
  ];
  let printed = '';
  for (const play of answers) {
    play();
    for (const form of [[], ['--json']]) {
      const { stdout, stderr } = await run(['--config', 'textgate.yaml', ...form], {}, config);
      printed += stdout;
      for (const secret of secrets) expect(stdout + stderr).not.toContain(secret);
    }
  }
  // What the upstream says is shown, but for its secrets.
  expect(printed).toMatch(/\(status 401\): .*the key \[key\] of/);
});

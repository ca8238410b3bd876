import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createGateway } from '../../src/index.ts';
import type { ConfigInput, Gateway } from '../../src/index.ts';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { readLive } from '../support/live-answer.ts';
import { chatFrames, sayTexts, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { serveHere } from '../support/serve-here.ts';
import { freePorts } from '../support/textgate-process.ts';

const adminToken = 'an-admin-token-for-tests';
let upstreams: readonly ScriptedUpstream[];
let gateway: Gateway;
let url: string;
let adminUrl: string;
let key: string;

const configOf = (upstream: string, limits: ConfigInput['limits'] = {}): ConfigInput => ({
  server: { port: 0 },
  admin: { port: 0, token: adminToken },
  storage: { url: 'sqlite::memory:' },
  limits,
  upstreams: { [upstream]: { url: upstreams[Number(upstream.slice(1))]?.url ?? '' } },
  models: { [`from-${upstream}`]: { routes: [{ upstream, model: 'm' }], free: true } },
});
const post = (model: string, stream = false): Promise<Response> =>
  fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, stream, messages: [{ role: 'user', content: 'x' }] }),
  });
const metrics = async (): Promise<string> => (await fetch(`${adminUrl}/metrics`)).text();

beforeEach(async () => {
  upstreams = await Promise.all([startUpstream(), startUpstream()]);
  for (const upstream of upstreams) upstream.play(sayTexts(['x']));
  gateway = createGateway(configOf('u0'), { logLevel: 'silent' });
  ({ url, adminUrl } = await gateway.listen());
  key = (await gateway.keys.create({ name: 'x' })).key;
});
afterEach(async () => {
  await gateway.close();
  await Promise.all(upstreams.map((upstream) => upstream.close()));
});

describe('a reloaded config', () => {
  test('applies from the next request on, with the same keys and limits in use', async () => {
    expect((await post('from-u0')).status).toBe(200);
    expect(gateway.reload(configOf('u1', { requestsPerMinute: 3 }))).toEqual([]);
    expect((await post('from-u0')).status).toBe(404);
    expect((await post('from-u1')).status).toBe(200);
    expect((await post('from-u1')).status).toBe(429);
    expect(upstreams.map(({ seen }) => seen.length)).toEqual([1, 1]);
    const text = await metrics();
    expect(text).toContain('textgate_config_reloads_total{result="ok"} 1');
    expect(text).toContain('textgate_upstream_state{upstream="u1"} 2');
    expect(text).not.toContain('textgate_upstream_state{upstream="u0"}');
  });

  test('lets a running answer end on the replaced upstream, and then closes that upstream’s connections', async () => {
    const frames = chatFrames(['one ', 'two']);
    const finish = Promise.withResolvers<() => void>();
    upstreams[0]?.play((response) => {
      sendStream(response, frames.slice(0, 2));
      finish.resolve(() => response.end(frames.slice(2).join('')));
    });
    const running = readLive(post('from-u0', true));
    await eventually('the request is in progress', () => running.text.includes('one '));
    gateway.reload(configOf('u1'));
    expect((await post('from-u1')).status).toBe(200);
    for (let turn = 0; turn < 10; turn++) await setImmediate();
    (await finish.promise)();
    await running.ended;
    expect(running.text).toMatch(/two[^]*data: \[DONE\]\n\n$/);
    await eventually('its connections are closed', async () => (await upstreams[0]?.connections()) === 0);
  });

  test('changes nothing when it is invalid, and reports all problems', async () => {
    const bad = { ...configOf('u1'), limits: { concurrency: 0 }, surprise: 1 } as unknown as ConfigInput;
    expect(() => gateway.reload(bad)).toThrow(
      /surprise[^]*limits\.concurrency|limits\.concurrency[^]*surprise/,
    );
    expect((await post('from-u0')).status).toBe(200);
  });

  test('reports the settings that need a restart', () => {
    const base = configOf('u1');
    const moved = { ...base, server: { port: 1 }, storage: { url: 'sqlite:elsewhere.db' } };
    expect(gateway.reload(moved)).toEqual(['server.port', 'storage.url']);
    const elsewhere = { ...base, admin: { ...base.admin, tokenFolder: 'elsewhere' } };
    expect(gateway.reload(elsewhere)).toContain('admin.tokenFolder');
  });
});

test('close after a reload leaves no timer that would keep the process alive', async () => {
  const clock = createFakeClock();
  const reloaded = createGateway(configOf('u0'), { logLevel: 'silent', clock });
  await reloaded.listen();
  reloaded.reload(configOf('u1'));
  for (let turn = 0; turn < 10; turn++) await setImmediate();
  await reloaded.close();
  expect(clock.scheduled).toBe(0);
});

test('textgate serve reloads a changed file, on SIGHUP and by itself, even one that changed while it started, and keeps the old config when the file is bad', async () => {
  const folder = makeTemporaryFolder();
  const file = join(folder, 'textgate.yaml');
  const write = (model: string, more = ''): void =>
    writeFileSync(
      file,
      `upstreams: { demo: { url: "demo:" } }\nmodels: { ${model}: { routes: [{ upstream: demo, model: demo }], free: true } }\n${more}`,
    );
  write('first');
  const server = serveHere(['serve', '--config', file], folder, freePorts);
  // Made after the config was read, and before the gateway is.
  await eventually('the admin token is made', () => existsSync(join(folder, 'data', 'admin-token')));
  write('second');
  await server.printed(/config reloaded: \S*textgate.yaml\n/);
  write('third', 'surprise: 1\n');
  server.signal('SIGHUP');
  await eventually('the problem is reported', () => server.output().includes('surprise: unknown key'));
  write('third', 'admin: { host: "${NEW_HOST}" }\n');
  server.signal('SIGHUP');
  await eventually('the variable is reported', () =>
    server
      .output()
      .includes('NEW_HOST is not set; a running process gets no new variables: set it and restart'),
  );
  write('second');
  server.signal('SIGHUP');
  await server.printed(/"msg":"config reload succeeds again"/);
  write('fourth', 'storage: { durability: normal }\n');
  server.signal('SIGHUP');
  await server.printed(
    /config reloaded: \S*textgate.yaml; these changes count from the next start on: storage.durability/,
  );
  server.signal('SIGTERM');
  expect((await server.finished).code).toBe(0);
});

describe('an upstream after a reload', () => {
  test('starts with a closed circuit when its settings changed, even after a request for a pause', async () => {
    upstreams[0]?.play((response) => void response.writeHead(429, { 'retry-after': '600' }).end('{}'));
    expect((await post('from-u0')).status).toBe(429);
    expect((await post('from-u0')).status).toBe(429);
    expect(upstreams[0]?.seen).toHaveLength(1);
    expect(await metrics()).toContain('textgate_upstream_state{upstream="u0"} 0');
    const config = configOf('u0');
    gateway.reload({ ...config, upstreams: { u0: { url: upstreams[1]?.url ?? '' } } });
    expect((await post('from-u0')).status).toBe(200);
    expect(await metrics()).toContain('textgate_upstream_state{upstream="u0"} 2');
  });

  test('keeps its circuit when its settings stay the same', async () => {
    upstreams[0]?.play((response) => void response.writeHead(429, { 'retry-after': '600' }).end('{}'));
    await post('from-u0');
    gateway.reload(configOf('u0', { concurrency: 7 }));
    expect((await post('from-u0')).status).toBe(429);
    expect(upstreams[0]?.seen).toHaveLength(1);
  });
});

describe('a reload', () => {
  test('keeps the list of models while the upstream that lists them is unavailable', async () => {
    const discovering = (): ConfigInput => ({ ...configOf('u0'), models: { from: 'u0' } });
    upstreams[0]?.play((response) => void response.end('{"data":[{"id":"listed"}]}'));
    gateway.reload(discovering());
    expect(await gateway.modelNames()).toEqual(['listed']);
    upstreams[0]?.play((response) => void response.writeHead(500).end());
    gateway.reload({ ...discovering(), limits: { concurrency: 5 } });
    expect(await gateway.modelNames()).toEqual(['listed']);
    const limited = Object.entries(discovering().upstreams).map(([name, one]) => [
      name,
      { ...one, maxInFlight: 4 },
    ]);
    gateway.reload({ ...discovering(), upstreams: Object.fromEntries(limited) as ConfigInput['upstreams'] });
    expect(await gateway.modelNames()).toEqual(['listed']);
  });

  test('is refused while the gateway closes, because nothing would close the new services', async () => {
    const closing = gateway.close();
    expect(() => gateway.reload(configOf('u1'))).toThrow('closing');
    await closing;
  });

  test('leaves no listeners on the server of passthrough paths', async () => {
    const withPath = (concurrency: number): ConfigInput => ({
      ...configOf('u0', { concurrency }),
      passthrough: [{ path: '/tokenize', upstream: 'u0' }],
    });
    const warnings: unknown[] = [];
    const note = (warning: unknown): void => void warnings.push(warning);
    process.on('warning', note);
    for (let time = 1; time <= 15; time++) {
      gateway.reload(withPath(time));
      const headers = { authorization: `Bearer ${key}` };
      expect(
        (await fetch(`${url}/tokenize`, { method: 'POST', headers, body: '{"messages":[]}' })).status,
      ).toBe(200);
    }
    for (let turn = 0; turn < 5; turn++) await setImmediate();
    process.off('warning', note);
    expect(warnings).toEqual([]);
  });
});

test('an invalid config file is reported without a quotation, because the line may hold a key', async () => {
  const folder = makeTemporaryFolder();
  const file = join(folder, 'textgate.yaml');
  const good =
    'upstreams: { demo: { url: "demo:" } }\nmodels: { a: { routes: [{ upstream: demo, model: demo }], free: true } }\n';
  writeFileSync(file, good);
  const server = serveHere(['serve', '--config', file], folder, freePorts);
  await server.printed(/textgate serves/);
  for (const [index, line] of [
    'upstreams: { x: { apiKey: "sk-canary-of-the-file }',
    'a: { apiKey: sk-canary-of-the-file',
    'x: *sk-canary-of-the-file',
    'apiKey: sk-canary-of-the-file\napiKey: sk-canary-of-the-file',
  ].entries()) {
    writeFileSync(file, line);
    server.signal('SIGHUP');
    await eventually(
      'the problem is reported',
      () => server.output().split("can't be used").length > index + 1,
    );
  }
  expect(server.output()).toMatch(/line 1, column \d+: not valid YAML: \w/);
  expect(server.output()).not.toContain('canary-of-the-file');
});

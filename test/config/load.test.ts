import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ConfigError, checkConfig, environmentConfig, loadConfigFile } from '../../src/config/load.ts';
import type { Environment } from '../../src/config/environment.ts';

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'textgate-config-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

function load(yaml: string, environment: Environment = {}) {
  const file = join(folder, 'textgate.yaml');
  writeFileSync(file, yaml);
  return loadConfigFile(file, environment);
}
function problemsOf(run: () => unknown): readonly string[] {
  try {
    run();
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

const head = 'upstreams: { local: { url: "http://127.0.0.1:8000/v1", apiKey: "${KEY}" } }\n';
const models = 'models: { from: local }\n';

describe('a config file', () => {
  test('is read with the environment’s values in its strings', () => {
    const read = load(
      'upstreams: { local: { url: "http://${HOST}:${PORT_1}/v1", apiKey: "${KEY}" } }\n' + models,
      { HOST: '10.0.0.1', PORT_1: '99', KEY: 'a"b: {c} - ${HOST}\n' },
    );
    expect(read.upstreams['local']).toMatchObject({
      url: new URL('http://10.0.0.1:99/v1'),
      apiKey: 'a"b: {c} - ${HOST}',
    });
  });

  test.each(['$KEY', '${key-none}', '${}', '$ {KEY}', '${1KEY}'])('leaves %s as it is', (text) => {
    const read = load(`upstreams: { local: { url: "demo:", apiKey: "${text}" } }\n${models}`, { KEY: 'k' });
    expect(read.upstreams['local']?.apiKey).toBe(text);
  });

  test('without the values that it needs is told all of them, with their places', () => {
    const yaml = `${head}models: { small: { routes: [{ upstream: local, model: "\${A}-\${B}" }], free: true } }`;
    expect(problemsOf(() => load(yaml, { B: 'b' }))).toEqual([
      'upstreams.local.apiKey: the environment variable KEY is not set',
      'models.small.routes[0].model: the environment variable A is not set',
    ]);
  });

  test('with a value that is empty is not told that it is missing, but what is wrong with it', () => {
    expect(problemsOf(() => load(head + models, { KEY: '' }))).toEqual([
      expect.stringMatching(/^upstreams\.local\.apiKey: (?!.*environment)/),
    ]);
  });

  test('with several faults is told all of them, in one error that names the file', () => {
    const yaml = `${head}${models}server: { prot: 1 }\nlimits: { concurrency: 0 }\n`;
    const run = () => load(yaml, { KEY: 'k' });
    expect(problemsOf(run)).toHaveLength(2);
    expect(run).toThrow(/^\S+textgate\.yaml can't be used:\n {2}- .+\n {2}- .+$/);
  });

  test.each([
    ['is not there', () => loadConfigFile(join(folder, 'none.yaml'), {}), /ENOENT/],
    ['is not YAML', () => load('server: {'), /./],
    ['says a thing twice', () => load(`${models}${models}`), /unique|duplicate/i],
    ['is empty', () => load(''), /./],
  ])('that %s is a problem of its own', (_name, run, message) => {
    expect(problemsOf(run)).toEqual([expect.stringMatching(message)]);
  });

  test('counts more than the environment, which fills in what it leaves out', () => {
    const environment = {
      KEY: 'k',
      TEXTGATE_HOST: '0.0.0.0',
      TEXTGATE_PORT: '9000',
      TEXTGATE_ADMIN_HOST: '10.0.0.2',
      TEXTGATE_ADMIN_PORT: '',
      TEXTGATE_ADMIN_TOKEN: 'a-token-that-is-long-enough',
    };
    expect(load(`${head}${models}server: { port: 7000 }\n`, environment)).toMatchObject({
      server: { host: '0.0.0.0', port: 7_000 },
      admin: { host: '10.0.0.2', port: 8_081, token: 'a-token-that-is-long-enough' },
    });
  });
});

describe('a start without a file', () => {
  test('offers the demo', () => {
    expect(environmentConfig({})).toMatchObject({
      upstreams: { demo: { url: new URL('demo:') } },
      models: { demo: { routes: [{ upstream: 'demo', model: 'demo' }] } },
    });
    expect(environmentConfig({ TEXTGATE_UPSTREAM_URL: '' }).models).toHaveProperty('demo');
  });

  test.each([
    [undefined, undefined],
    ['', undefined],
    ['sk-x', 'sk-x'],
  ])('offers what the named upstream lists, with the key %j', (given, apiKey) => {
    const url = 'http://127.0.0.1:11434/v1';
    const { upstreams, models: offered } = environmentConfig({
      TEXTGATE_UPSTREAM_URL: url,
      TEXTGATE_UPSTREAM_API_KEY: given,
    });
    expect(offered).toMatchObject({ from: 'upstream' });
    expect(upstreams['upstream']?.url.href).toBe(url);
    expect(upstreams['upstream']?.apiKey).toBe(apiKey);
  });

  test('names the environment as the place of its problems', () => {
    const environment = { TEXTGATE_UPSTREAM_URL: 'not an address', TEXTGATE_PORT: 'http' };
    expect(problemsOf(() => environmentConfig(environment)).map((problem) => problem.split(':')[0])).toEqual([
      'TEXTGATE_PORT',
      'TEXTGATE_UPSTREAM_URL',
    ]);
    expect(() => environmentConfig(environment)).toThrow(/^the environment can't be used/);
  });
});

test('a config given as an object is checked like a file, under the name it is given', () => {
  expect(checkConfig({ upstreams: { demo: { url: 'demo:' } }, models: { from: 'demo' } }, 'x')).toMatchObject(
    {
      models: { from: 'demo' },
    },
  );
  expect(() => checkConfig({}, 'the options')).toThrow(/^the options can't be used/);
});

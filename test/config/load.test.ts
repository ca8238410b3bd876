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
  test('is read with environment variables replaced in its strings', () => {
    const read = load(
      'upstreams: { local: { url: "http://${HOST}:${PORT_1}/v1", apiKey: "${KEY}" } }\n' + models,
      { HOST: '10.0.0.1', PORT_1: '99', KEY: 'a"b: {c} - ${HOST}\n' },
    );
    expect(read.upstreams['local']).toMatchObject({
      url: new URL('http://10.0.0.1:99/v1'),
      apiKey: 'a"b: {c} - ${HOST}',
    });
  });

  test.each(['$KEY', '${key-none}', '${}', '$ {KEY}', '${1KEY}'])('keeps %s unchanged', (text) => {
    const read = load(`upstreams: { local: { url: "demo:", apiKey: "${text}" } }\n${models}`, { KEY: 'k' });
    expect(read.upstreams['local']?.apiKey).toBe(text);
  });

  test('is refused with all missing environment variables and their paths', () => {
    const yaml = `${head}models: { small: { routes: [{ upstream: local, model: "\${A}-\${B}" }], free: true } }`;
    expect(problemsOf(() => load(yaml, { B: 'b' }))).toEqual([
      'upstreams.local.apiKey: the environment variable KEY is not set',
      'models.small.routes[0].model: the environment variable A is not set',
    ]);
  });

  test('is refused for the empty value of a variable, and not as if the variable were missing', () => {
    expect(problemsOf(() => load(head + models, { KEY: '' }))).toEqual([
      expect.stringMatching(/^upstreams\.local\.apiKey: (?!.*environment)/),
    ]);
  });

  test('is refused with all of its problems, in one error that names the file', () => {
    const yaml = `${head}${models}server: { prot: 1 }\nlimits: { concurrency: 0 }\n`;
    const run = () => load(yaml, { KEY: 'k' });
    expect(problemsOf(run)).toHaveLength(2);
    expect(run).toThrow(/^\S+textgate\.yaml can't be used:\n {2}- .+\n {2}- .+$/);
  });

  test.each([
    ['does not exist', () => loadConfigFile(join(folder, 'none.yaml'), {}), /ENOENT/],
    ['is not YAML', () => load('server: {'), /./],
    ['has a duplicate key', () => load(`${models}${models}`), /unique|duplicate/i],
    ['is empty', () => load(''), /./],
  ])('is refused when it %s', (_name, run, message) => {
    expect(problemsOf(run)).toEqual([expect.stringMatching(message)]);
  });

  test('has precedence over the environment, which fills in the settings it leaves out', () => {
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
  test('offers the built-in demo', () => {
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
  ])('offers the models of the upstream in the environment, with the key %j', (given, apiKey) => {
    const url = 'http://127.0.0.1:11434/v1';
    const { upstreams, models: offered } = environmentConfig({
      TEXTGATE_UPSTREAM_URL: url,
      TEXTGATE_UPSTREAM_API_KEY: given,
    });
    const name = '127.0.0.1:11434';
    expect(offered).toMatchObject({ from: name });
    expect(upstreams[name]?.url.href).toBe(url);
    expect(upstreams[name]?.apiKey).toBe(apiKey);
  });

  test.each([
    ['https://api.openai.com/v1', 'api.openai.com'],
    ['https://API.example.com:443/v1?key=secret', 'api.example.com'],
    ['http://localhost:8000', 'localhost:8000'],
    ['http://[::1]:8000/v1', '[::1]:8000'],
    ['demo:', 'upstream'],
  ])('names the upstream at %s after its host: %s', (url, name) => {
    const { upstreams, models: offered } = environmentConfig({ TEXTGATE_UPSTREAM_URL: url });
    expect(Object.keys(upstreams)).toEqual([name]);
    expect(offered).toMatchObject({ from: name });
  });

  test.each(['http://user:password@model.example.com:8000/v1', 'http://169.254.169.254/v1'])(
    'reports a problem of the address %s by the name of its variable',
    (url) => {
      const environment = { TEXTGATE_UPSTREAM_URL: url, TEXTGATE_UPSTREAM_API_KEY: 'k\u00e9y' };
      const problems = problemsOf(() => environmentConfig(environment)).join('\n');
      expect(problems).toMatch(/^TEXTGATE_UPSTREAM_URL: /m);
      expect(problems).not.toContain('upstreams.');
      expect(problems).not.toContain('password@');
    },
  );

  test('reports a problem of the key by the name of its variable', () => {
    const environment = {
      TEXTGATE_UPSTREAM_URL: 'http://10.0.0.1:8000',
      TEXTGATE_UPSTREAM_API_KEY: 'k\u00e9y',
    };
    expect(problemsOf(() => environmentConfig(environment))).toEqual([
      'TEXTGATE_UPSTREAM_API_KEY: expected printable ASCII',
    ]);
  });

  test('reports its problems by the names of environment variables', () => {
    const environment = { TEXTGATE_UPSTREAM_URL: 'not an address', TEXTGATE_PORT: 'http' };
    expect(problemsOf(() => environmentConfig(environment)).map((problem) => problem.split(':')[0])).toEqual([
      'TEXTGATE_PORT',
      'TEXTGATE_UPSTREAM_URL',
    ]);
    expect(() => environmentConfig(environment)).toThrow(/^the environment can't be used/);
  });
});

test('a config given as an object is checked like a file, and its errors have the given name', () => {
  expect(checkConfig({ upstreams: { demo: { url: 'demo:' } }, models: { from: 'demo' } }, 'x')).toMatchObject(
    {
      models: { from: 'demo' },
    },
  );
  expect(() => checkConfig({}, 'the options')).toThrow(/^the options can't be used/);
});

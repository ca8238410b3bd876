import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { checkConfig, environmentConfig, loadAdminSection, loadConfigFile } from '../../src/config/load.ts';
import { loadYaml as load, problemsOf } from '../support/config-file.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';

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

  test.each([
    ['${KEY:-none}', {}, 'none'],
    ['${KEY:-none}', { KEY: ' ' }, 'none'],
    ['${KEY:-none}', { KEY: 'k' }, 'k'],
    ['a ${KEY:-b: c} d', {}, 'a b: c d'],
    ['$$KEY', { KEY: 'k' }, '$KEY'],
    ['$${KEY}', { KEY: 'k' }, '${KEY}'],
    ['$$$$', {}, '$$'],
    ['$$${KEY}', { KEY: '$$${OTHER}' }, '$$$${OTHER}'],
  ])('has %s replaced with the environment %j', (text, environment, value) => {
    const read = load(`upstreams: { local: { url: "demo:", apiKey: "${text}" } }\n${models}`, environment);
    expect(read.upstreams['local']?.apiKey).toBe(value);
  });

  test('may take numbers, switches, durations and prices from the environment', () => {
    const read = load(
      'server: { port: "${A}", drain: "${B}" }\nlimits: { lowBalance: "${C}" }\ncompatibility: { responsesDone: "${D}" }\n' +
        'upstreams: { local: { url: "demo:" } }\nmodels: { small: { routes: [{ upstream: local, model: m }], free: "${D}" } }\n',
      { A: '9', B: '2s', C: '0.5', D: 'true' },
    );
    expect(read).toMatchObject({
      server: { port: 9, drain: 2_000 },
      limits: { lowBalance: 500_000_000 },
      compatibility: { responsesDone: true },
      models: { small: { free: true } },
    });
  });

  test.each([
    ['0.15', 150_000_000],
    ['.15', 150_000_000],
    ['0.1500000000000', 150_000_000],
    ['1e-7', 100],
    ['1.5E+3', 1_500_000_000_000],
    ['+2', 2_000_000_000],
    ['9007199.254740991', 9_007_199_254_740_991],
    // The nearest number has another last digit.
    ['8388609.000000001', 8_388_609_000_000_001],
  ])('may have the price %s as a number, of which no digit is lost', (text, nanos) => {
    const read = load(`${head}models: { from: local, price: { input: ${text}, output: 0 } }`, { KEY: 'k' });
    expect(read.models).toMatchObject({ price: { input: nanos, output: 0 } });
  });

  test('may have a price with an anchor, and an alias of it', () => {
    const read = load(`${head}models: { from: local, price: { input: &p 0.1500, output: *p } }`, {
      KEY: 'k',
    });
    expect(read.models).toMatchObject({ price: { input: 150_000_000, output: 150_000_000 } });
  });

  test.each(['0x10', '.inf', '.nan', '1_000', '1e-10', '1e99', '-1', '0.0000000001'])(
    'is refused for the price %s',
    (text) => {
      const yaml = `${head}models: { from: local, price: { input: ${text}, output: 0 } }`;
      expect(problemsOf(() => load(yaml, { KEY: 'k' }))).toEqual([
        expect.stringContaining('models.price.input: expected USD as a decimal number'),
      ]);
    },
  );

  test('is refused with all missing environment variables and their paths', () => {
    const yaml = `${head}models: { small: { routes: [{ upstream: local, model: "\${A}-\${B}" }], free: true } }`;
    expect(problemsOf(() => load(yaml, { B: 'b' }))).toEqual([
      'line 1: upstreams.local.apiKey: the environment variable KEY is not set',
      'line 2: models.small.routes[0].model: the environment variable A is not set',
    ]);
  });

  test('is refused with all of its problems, in one error that names the file', () => {
    const yaml = `${head}${models}server: { prot: 1 }\nlimits: { concurrency: 0 }\n`;
    const run = () => load(yaml, { KEY: 'k' });
    expect(problemsOf(run)).toHaveLength(2);
    expect(run).toThrow(/^\S+textgate\.yaml can't be used:\n {2}- .+\n {2}- .+$/);
  });

  test.each([
    ['does not exist', join(tmpdir(), 'no-such-folder', 'none.yaml'), 'there is no such file'],
    ['is a folder', tmpdir(), 'this is a folder, and not a file'],
    ['has no end', '/dev/zero', 'the file has more than 16777216 bytes'],
  ])('is refused when it %s', (_name, file, problem) => {
    expect(problemsOf(() => loadConfigFile(file, {}))).toEqual([problem]);
  });

  test.each(['latin1', 'utf16le'] as const)('is refused in the encoding %s', (encoding) => {
    const file = join(makeTemporaryFolder(), 'textgate.yaml');
    writeFileSync(file, Buffer.from(`${models}# caf\u{e9}\n`, encoding));
    expect(problemsOf(() => loadConfigFile(file, {}))).toEqual([
      'the file is not in UTF-8: save it in that encoding',
    ]);
  });

  test('is refused for a wrong variable of a setting that it leaves out, by the name of the variable', () => {
    const environment = {
      KEY: 'k',
      TEXTGATE_PORT: 'http',
      TEXTGATE_ADMIN_HOST: '0.0.0.0:1',
      TEXTGATE_STORAGE_URL: 'mysql://root:a-secret@database/textgate',
    };
    const yaml = `${head}${models}server: { host: "a b" }\n`;
    expect(problemsOf(() => load(yaml, environment))).toEqual([
      expect.stringMatching(/^TEXTGATE_ADMIN_HOST: expected a host name/),
      expect.stringMatching(/^TEXTGATE_STORAGE_URL: (?!.*a-secret)/),
      expect.stringMatching(/^TEXTGATE_PORT: expected a number/),
      expect.stringMatching(/^line 3: server\.host: expected a host name/),
    ]);
  });

  test('has precedence over the environment, which fills in the settings it leaves out', () => {
    const environment = {
      KEY: 'k',
      TEXTGATE_HOST: '0.0.0.0',
      TEXTGATE_PORT: '9000',
      TEXTGATE_ADMIN_HOST: '10.0.0.2',
      TEXTGATE_ADMIN_PORT: '',
      TEXTGATE_ADMIN_TOKEN: 'a-token-that-is-long-enough',
      TEXTGATE_STORAGE_URL: 'postgres://textgate@database/textgate',
    };
    expect(load(`${head}${models}server: { port: 7000 }\n`, environment)).toMatchObject({
      storage: { url: 'postgres://textgate@database/textgate' },
      server: { host: '0.0.0.0', port: 7_000 },
      admin: { host: '10.0.0.2', port: 8_081, token: 'a-token-that-is-long-enough' },
    });
  });
});

test('the admin section of a file is read whatever its other sections and the variables of the other listener say', () => {
  const file = join(makeTemporaryFolder(), 'textgate.yaml');
  writeFileSync(file, 'server: { port: 19090 }\nadmin: { port: 8080 }\nsurprise: 1\n');
  const environment = { TEXTGATE_HOST: 'a b', TEXTGATE_PORT: '8080' };
  expect(loadAdminSection(file, environment)).toMatchObject({ host: '127.0.0.1', port: 8_080 });
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

  test('starts on the usual port beside a Kubernetes service named textgate, whose address is in TEXTGATE_PORT', () => {
    const environment = { TEXTGATE_PORT: 'tcp://10.96.0.7:80', TEXTGATE_ADMIN_PORT: '9000' };
    const { server, admin } = environmentConfig(environment);
    expect([server.port, admin.port]).toEqual([8080, 9000]);
  });

  test('shows the address of the upstream in the environment in no receipt', () => {
    const { receipts } = environmentConfig({ TEXTGATE_UPSTREAM_URL: 'http://10.0.0.1:8000/v1' });
    expect(receipts.upstreams).toBe('hidden');
    expect(environmentConfig({}).receipts.upstreams).toBe('shown');
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

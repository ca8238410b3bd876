import { describe, expect, test } from 'vitest';
import { entry, importEntries, partOf } from './imported.ts';

/** Imports an entry with parameters beside one that has none. */
async function importBeside(params: string, sections = '') {
  const imported = await importEntries(
    [entry('good', 'model: groq/good'), entry('odd', `model: groq/odd, ${params}`)],
    sections,
  );
  expect(imported).toMatchObject({ code: 0, stderr: '' });
  const [changed, left] = [partOf(imported.stdout, 'Changed'), partOf(imported.stdout, 'No counterpart')];
  return { ...imported, said: partOf(imported.stdout, 'Taken') + changed, left };
}

const limit = 'expected a whole number from 1 to 2147483647, of a model whose name a setting can have';

describe('a setting whose value can not be written is left out, and the report says so', () => {
  test.each([
    ['rpm', '-1', limit],
    ['rpm', '0', limit],
    ['rpm', '9999999999', limit],
    ['tpm', 'os.environ/TPM', limit],
    ['max_parallel_requests', '0', limit],
    ['max_parallel_requests', '99999999999', limit],
    ['timeout', '0', 'expected a number above 0'],
    ['stream_timeout', '10s', 'expected a number above 0'],
    ['weight', 'os.environ/WEIGHT', 'expected a number'],
    ['api_key', '[a]', 'expected a text'],
    ['extra_headers', 'a', 'expected names with values'],
    ['organization', '[a]', 'expected a text'],
    ['aws_region_name', 'eu-west-1', 'the address of this provider has no such part'],
  ])('%s: %s', async (name, value, expected) => {
    const { config, left, said } = await importBeside(`${name}: ${value}`);
    expect(Object.keys(config.models)).toEqual(['good', 'odd']);
    expect(config.upstreams).toEqual({ groq: expect.not.objectContaining({ models: {}, timeouts: {} }) });
    expect(left).toContain(`${name}: left out: ${expected} (odd)\n`);
    expect(said).not.toContain(`${name}:`);
  });

  test.each([
    ['host: a', 'the gateway sets this header itself'],
    ['content-length: 3', 'the gateway sets this header itself'],
    ['X-Title: café', 'expected printable ASCII'],
    ['X-Secret: café', 'expected printable ASCII'],
    ['X-Title: [a]', 'expected a text'],
    ['"a b": c', 'expected a header name'],
    ['__proto__: a', 'no header can have this name here'],
    ['sk-0123456789: a', 'no header can have this name here'],
  ])('a header %s', async (header, expected) => {
    const { config, left, written, stdout } = await importBeside(`extra_headers: { ${header} }`);
    expect(config.upstreams['groq']).not.toHaveProperty('headers');
    expect(left).toBe(`  extra_headers: left out: ${expected} (odd)\n`);
    expect(written + stdout).not.toMatch(/sk-0123|café/);
  });

  test('a header that is there twice', async () => {
    const { config, left } = await importBeside(
      'headers: { user-agent: a }, extra_headers: { User-Agent: b, USER-AGENT: c }',
    );
    expect(config.upstreams).toMatchObject({ 'groq-2': { headers: { 'User-Agent': 'b' } } });
    expect(left).toBe('  extra_headers, headers: left out: expected each header only once (odd)\n');
  });

  test('an organization that is no ASCII', async () => {
    const { config, left } = await importBeside('organization: café');
    expect(config.upstreams['groq']).not.toHaveProperty('headers');
    expect(left).toBe('  organization: left out: expected printable ASCII (odd)\n');
  });

  test('limits of a model whose name there is in a variable', async () => {
    const { config, stdout } = await importEntries([entry('odd', 'model: "groq/${MODEL}", rpm: 5')]);
    expect(config.upstreams['groq']).not.toHaveProperty('models');
    expect(partOf(stdout, 'No counterpart')).toContain(`rpm: left out: ${limit} (odd)\n`);
  });

  test('settings of sections that have no effect there', async () => {
    const { config, stdout } = await importEntries(
      [entry('a', 'model: groq/a')],
      `router_settings: { timeout: 0, routing_strategy: odd, model_group_alias: [a] }
litellm_settings: { request_timeout: 0, timeout: 5, drop_params: maybe }
general_settings: { fallbacks: [{ a: [b] }] }
`,
    );
    expect(config.upstreams['groq']).not.toHaveProperty('timeouts');
    expect(config).not.toHaveProperty('compatibility');
    expect(partOf(stdout, 'Taken') + partOf(stdout, 'Changed')).not.toContain('_settings');
    const left = partOf(stdout, 'No counterpart');
    expect(left).toContain('router_settings.timeout, litellm_settings.request_timeout: left out: expected');
    expect(left).toContain('router_settings.routing_strategy: left out: not known here\n');
    expect(left).toContain('router_settings.model_group_alias: left out: expected names with values\n');
    expect(left).toContain('litellm_settings.drop_params: left out: expected true or false\n');
    expect(left).toContain('litellm_settings.timeout, general_settings.fallbacks: not known here\n');
  });
});

describe('a model that can not be written is left out, and the report says so', () => {
  test.each([
    ['model: "openai/"', 'expected a name that is not empty'],
    ['model: "openai/a\\u0007"', 'expected a name without control characters'],
    ['model: vertex_ai/gemini-x, vertex_location: "eu west"', 'its address: expected an address such as'],
    ['model: openai/a, api_base: "http://169.254.169.254/v1"', 'api_base: a link-local address'],
    ['model: perplexity/a, api_base: "demo:"', 'its address: the built-in demo has Chat Completions only'],
    ['model: openai/a, api_base: "${BASE:-nowhere}"', 'api_base: expected an address such as'],
  ])('%s', async (params, expected) => {
    const { code, stderr, config, stdout } = await importEntries([
      entry('good', 'model: groq/good'),
      entry('odd', params),
    ]);
    expect([code, stderr, Object.keys(config.models)]).toEqual([0, '', ['good']]);
    expect(partOf(stdout, 'No counterpart')).toContain(`model: ${expected}`);
  });

  test.each(['<<', '__proto__', '${HOME}', 'a\u{2028}b', 'x'.repeat(201)])(
    'by its name or as an alias: %s',
    async (name) => {
      const { code, stderr, config, stdout } = await importEntries(
        [
          entry('good', 'model: groq/good'),
          entry(name, 'model: groq/odd, rpm: 5'),
          entry('b', `model: "groq/${name}", rpm: 5`),
        ],
        `router_settings: { model_group_alias: { "": good, "${name}": good } }\n`,
      );
      expect([code, stderr, Object.keys(config.models)]).toEqual([0, '', ['good', 'b']]);
      const left = partOf(stdout, 'No counterpart');
      expect(left).toContain('model: no model can have this name here (');
      expect(left).toMatch(/router_settings\.model_group_alias: .* none that a model can have \("", /);
    },
  );

  test('as a pattern with several *', async () => {
    const { code, stderr } = await importEntries([entry('a-*-*', 'model: hosted_vllm/*')]);
    expect(code).toBe(1);
    expect(stderr).toContain('no model of litellm.yaml has a counterpart');
    expect(stderr).toContain('model: a pattern whose models are not known');
  });
});

test('a huge weight is one, and no reason to write nothing', async () => {
  const { config } = await importEntries([
    entry('a', 'model: groq/a, weight: 1e300'),
    entry('a', 'model: groq/b, weight: 1'),
  ]);
  expect(config.models['a']?.['routes']).toMatchObject([{ weight: 1_000_000_000 }, { weight: 1 }]);
});

test('variables that the report names are those of the file that is written', async () => {
  const { stdout, written } = await importEntries([
    entry('a', 'model: openai/gpt-4o'),
    entry('${HOME}', 'model: openai/gpt-4o'),
    entry('b', 'model: openai/b, api_base: os.environ/NAME'),
  ]);
  expect(written).toContain('# "${HOME}" is left out');
  expect(stdout).toContain('The gateway reads OPENAI_API_KEY, NAME.\n');
});

test('a config that can not be used for another reason is described without lines of a file that is not there', async () => {
  const { code, stderr, written } = await importEntries([
    entry('a', 'model: openai/a, api_base: "http://__proto__/v1"'),
  ]);
  expect([code, written]).toEqual([1, '']);
  expect(stderr).toBe(
    "textgate: nothing is written: the new textgate.yaml can't be used:\n  - upstreams.__proto__: this name is reserved: choose another one\n",
  );
});

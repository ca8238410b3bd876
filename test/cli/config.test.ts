import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { runCommand } from '../support/run-command.ts';

const good = `
upstreams: { mine: { url: "http://127.0.0.1:1/v1?api-version=sk-canary-four&key=\${SECRET}", apiKey: "\${SECRET}", headers: { x-org: sk-canary-two } } }
models: { small: { routes: [{ upstream: mine, model: m }], price: { input: "1", output: "2" } } }
admin: { token: sk-canary-three-three }
`;

/** The text that replaces a secret. */
const hidden = '(hidden-by-config-show)';

async function run(args: readonly string[], text: string) {
  const folder = makeTemporaryFolder();
  writeFileSync(join(folder, 'textgate.yaml'), text);
  return runCommand(args, folder, { SECRET: 'sk-canary-one' });
}

describe('textgate config', () => {
  test('check reports that a file is valid', async () => {
    const { code, stdout } = await run(['config', 'check', 'textgate.yaml'], good);
    expect([code, stdout]).toEqual([0, 'textgate.yaml is valid\n']);
  });

  test('check reports prices that the public list does not have, each at its line', async () => {
    const price = (route: string, written: string): string => `{ routes: [${route}], price: ${written} }`;
    const text = `
upstreams:
  openai: { url: https://api.openai.com/v1, apiKey: some-key-of-a-test }
  own: { url: "http://127.0.0.1:1/v1" }
models:
  good: ${price('{ upstream: openai, model: gpt-4o-mini }', 'list')}
  twice: ${price('{ upstream: openai, model: gpt-4o-mini }, { upstream: openai, model: gpt-4o-mini }', 'list')}
  misspelt: ${price('{ upstream: openai, model: gpt-4o-minim }', 'list')}
  elsewhere: ${price('{ upstream: own, model: m }', 'list')}
  unlike: ${price('{ upstream: openai, model: gpt-4o-mini }, { upstream: openai, model: gpt-4o }', 'list')}
  unknown: ${price('{ upstream: own, model: m }', '{ list: opnai/gpt-4o }')}
  sound: ${price('{ upstream: own, model: m }', '{ list: openai/whisper-1 }')}
  free: ${price('{ upstream: own, model: m }', '{ list: openai/gpt-4o, times: "0" }')}
  number: ${price('{ upstream: own, model: m }', '{ list: openai/gpt-4o, times: 1.2 }')}
  both: ${price('{ upstream: own, model: m }', '{ list: openai/gpt-4o, input: "1" }')}
  other: ${price('{ upstream: own, model: m }', 'lists')}
`;
    const { code, stderr } = await run(['config', 'check', 'textgate.yaml'], text);
    expect(code).toBe(1);
    expect(stderr.split('\n').filter((line) => line.startsWith('  - line'))).toEqual([
      expect.stringMatching(
        /^  - line 8: models.misspelt.price: .* no model 'gpt-4o-minim' of openai; it has gpt-4o-mini, /,
      ),
      expect.stringMatching(
        /^  - line 9: models.elsewhere.price: .* no provider with the address of this upstream: name one/,
      ),
      expect.stringMatching(
        /^  - line 10: models.unlike.price: the routes have different prices in the list/,
      ),
      expect.stringMatching(
        /^  - line 11: models.unknown.price.list: the list of prices has no provider 'opnai'/,
      ),
      expect.stringMatching(/^  - line 12: models.sound.price.list: .* it has no price of text as output/),
      expect.stringMatching(
        /^  - line 13: models.free.price.times: expected a number above 0 and at most 1000/,
      ),
      '  - line 14: models.number.price.times: expected a text, not a number: write it in quotes, "1.2"',
      '  - line 15: models.both.price.input: not together with the other keys here: leave out either',
      expect.stringMatching(
        /^  - line 16: models.other.price: expected "list", or prices such as .*; did you mean 'list'\?$/,
      ),
    ]);
  });

  test('check reports all problems at once, and exits with 1', async () => {
    const bad =
      'upstreams: { mine: { url: nowhere, timeouts: { idle: 5 } } }\nmodels: { small: {} }\nserver: { prt: 1 }\n';
    const { code, stderr } = await run(['config', 'check', 'textgate.yaml'], bad);
    expect(code).toBe(1);
    for (const problem of [
      'upstreams.mine.url: expected an address',
      'upstreams.mine.timeouts.idle: expected a duration, not a number: write 5s or 5ms',
      'models.small.routes: missing: expected a list',
      "line 3: server.prt: unknown key; did you mean 'port'?",
    ])
      expect(stderr).toContain(problem);
  });

  test('show prints the effective config as a valid file, in its own units and without secrets', async () => {
    const { code, stdout } = await run(['config', 'show', 'textgate.yaml'], good);
    expect(code).toBe(0);
    expect(parse(stdout)).toMatchObject({
      server: { port: 8080, drain: '25s', maxBody: '1MiB' },
      limits: { lowBalance: '1.00' },
      models: { small: { price: { input: '1.00', cacheWrite: '1.25', output: '2.00' } } },
    });
    expect(stdout).not.toContain('canary');
    expect((await run(['config', 'check', 'textgate.yaml'], stdout)).stdout).toBe('textgate.yaml is valid\n');
  });

  test('show --json prints the effective config in the gateway’s own units, without secrets', async () => {
    const { code, stdout } = await run(['config', 'show', '--json', 'textgate.yaml'], good);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      server: { port: 8080, drain: 25_000 },
      admin: { token: hidden },
      upstreams: {
        mine: {
          url: `http://127.0.0.1:1/v1?api-version=${hidden}&key=${hidden}`,
          apiKey: hidden,
          headers: { 'x-org': hidden },
          dialects: ['chat'],
        },
      },
    });
    expect(stdout).not.toContain('canary');
  });

  test('schema prints a JSON Schema with the config’s keys', async () => {
    const { code, stdout } = await run(['config', 'schema'], '');
    expect(code).toBe(0);
    expect(JSON.stringify(JSON.parse(stdout))).toContain('"requestsPerMinute"');
  });
});

test('textgate --version prints the package’s version', async () => {
  const { stdout } = await run(['--version'], '');
  expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
});

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { runCommand } from '../../support/run-command.ts';
import { makeTemporaryFolder } from '../../support/temporary-folder.ts';
import { importText } from './imported.ts';

const one = 'model_list: [{ model_name: a, litellm_params: { model: groq/a } }]\n';

/** Ten lists, each with ten of the one before: ten thousand million values if they were copied. */
const bomb = [
  'l0: &l0 [x, x, x, x, x, x, x, x, x, x]',
  ...Array.from(
    { length: 9 },
    (_, at) => `l${at + 1}: &l${at + 1} [${Array(10).fill(`*l${at}`).join(', ')}]`,
  ),
].join('\n');

describe('a config that can not be taken over', () => {
  test.each<[string, string | Uint8Array, string]>([
    ['an empty file', '', 'line 1: the file is empty'],
    ['a text', 'hello', 'line 1: not a config of LiteLLM’s proxy'],
    [
      'another YAML file',
      'services: { app: {} }',
      'line 1: not a config of LiteLLM’s proxy: that has model_list',
    ],
    [
      'a config of textgate',
      '\nupstreams: {}\nmodels: {}\n',
      'line 2: upstreams: this is a config of textgate already',
    ],
    [
      'values of a chart',
      'proxy_config:\n  model_list: []\n',
      'line 1: proxy_config: the settings of a chart: put what is below it into a file of its own',
    ],
    [
      'no models',
      'model_list: []\n',
      'line 1: model_list: it lists no models, and those that LiteLLM has in its database are not read',
    ],
    [
      'an include',
      `${one}include: [models.yaml]\n`,
      'line 2: include: the files that it names are not read: put what they have into one file',
    ],
    [
      'an entry without parameters',
      'model_list:\n  - model_name: a\n',
      'line 2: model_list[0]: expected model_name, and litellm_params with model: there are no litellm_params',
    ],
    [
      'an entry without a name',
      'model_list:\n  - litellm_params: { model: groq/a }\n',
      'line 2: model_list[0]: expected model_name, and litellm_params with model: there is no model_name',
    ],
    [
      'an entry without a model',
      'model_list:\n  - { model_name: a, litellm_params: { api_key: x } }\n',
      'there is no litellm_params.model',
    ],
    [
      'a key twice',
      `${one}litellm_settings:\n  drop_params: true\n  drop_params: false\n`,
      'line 4, column 3: the same key twice in one object',
    ],
    [
      'an unknown alias',
      'model_list:\n  - *gone\n',
      'line 2, column 5: a value that begins with * is an alias, and no anchor (&name) before it has its name',
    ],
    [
      'an alias in its own anchor',
      'model_list: &a [*a]\n',
      'line 1, column 17: a value that begins with * is an alias',
    ],
    [
      'a merge of no settings',
      'a: &a 3\nmodel_list:\n  - { <<: *a }\n',
      'line 3, column 7: << merges settings: expected an alias',
    ],
    ['a tag', 'model_list: !ENV x\n', 'line 1, column 13: a value that begins with ! is a tag'],
    [
      'a tag of bytes',
      'model_list: [{ model_name: a, litellm_params: { model: a, api_key: !!binary c2s= } }]\n',
      'line 1, column 68: a value that begins with ! is a tag',
    ],
    ['another encoding', Buffer.from(`${one}# caf\u{e9}`, 'latin1'), 'the file is not in UTF-8'],
    ['two documents', `${one}---\n${one}`, 'the file has several documents'],
    ['wrong indentation', 'model_list:\n  - model_name: a\n   litellm_params: {}\n', 'line 3'],
    ['a YAML bomb in its list', `${bomb}\nmodel_list: *l9\n`, 'line 9: model_list[0]: expected model_name'],
  ])('is refused with its line and what to write: %s', async (_what, text, message) => {
    const { code, stdout, stderr, folder } = await importText(text);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr.replaceAll("'", '’')).toContain(message);
    expect(readdirSync(folder)).toEqual(['litellm.yaml']);
  });

  test('is named where it is not there, and its faults quote no text', async () => {
    const folder = makeTemporaryFolder();
    const { code, stderr } = await runCommand(['import', 'litellm', join(folder, 'no.yaml')], folder);
    expect([code, stderr]).toMatchObject([1, expect.stringContaining('no.yaml')]);
    const faulty = await importText('model_list:\n  - api_key: sk-canary: x\n');
    expect(faulty.stderr).toContain('line 2');
    expect(faulty.stderr).not.toContain('canary');
  });

  test('is read no further than it may be long', async () => {
    const { stderr } = await runCommand(['import', 'litellm', '/dev/zero'], makeTemporaryFolder());
    expect(stderr).toBe("textgate: /dev/zero can't be used:\n  - the file has more than 16777216 bytes\n");
  });

  test('names up to ten entries with faults at once', async () => {
    const { stderr } = await importText(`model_list:\n${'  - { model_name: a }\n'.repeat(12)}`);
    expect(stderr.match(/there are no litellm_params/g)).toHaveLength(10);
  });
});

describe('a config that is taken over all the same', () => {
  test.each([
    ['a byte order mark and Windows line ends', `\u{feff}${one.replaceAll('\n', '\r\n')}`],
    ['a YAML bomb beside its list', `${bomb}\n${one}`],
    [
      'anchors',
      'model_list:\n  - { model_name: b, litellm_params: &p { model: groq/a } }\n  - { model_name: a, litellm_params: *p }\n',
    ],
    [
      'merge keys',
      'x: &x { model: groq/x, rpm: 5 }\ny: &y { model: groq/a }\nmodel_list: [{ model_name: a, litellm_params: { <<: [*y, *x] } }]\n',
    ],
    ['empty settings', `${one}litellm_settings:\nrouter_settings: ~\ngeneral_settings: null\n`],
  ])('has %s', async (_what, text) => {
    const { code, stderr, config } = await importText(text);
    expect([code, stderr]).toEqual([0, '']);
    expect(config.models['a']?.['routes']).toEqual([{ upstream: 'groq', model: 'a' }]);
  });
});

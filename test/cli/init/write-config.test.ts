import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { chooseModels } from '../../../src/cli/init/choose-models.ts';
import type { AskedUpstream } from '../../../src/cli/init/known-upstreams.ts';
import { writeConfig } from '../../../src/cli/init/write-config.ts';
import { loadConfigFile } from '../../../src/config/load.ts';
import type { Config } from '../../../src/config/schema/schema.ts';
import { propertyRun } from '../../support/property-run.ts';

const ownUrl = 'http://127.0.0.1:9000/v1';

function listing(names: readonly string[], url = ownUrl, name = 'local'): AskedUpstream {
  return { name, line: { url }, foundBy: url, listed: { kind: 'listed', names } };
}

const ownChoice = { models: [], price: null };

function choose(
  names: readonly string[],
  url?: string,
  choice: Parameters<typeof chooseModels>[1] = ownChoice,
) {
  return chooseModels(listing(names, url), choice, new Set());
}

function load(text: string): Config {
  return loadConfigFile('textgate.yaml', {}, {}, text);
}

describe('a config that textgate init writes', () => {
  test('offers each model under its name, whatever characters the name has', () => {
    const name = fc
      .string({ unit: 'binary', minLength: 1, maxLength: 30 })
      .filter((text) => !/\p{Cc}|\p{Cs}/u.test(text));
    const special = fc.constantFrom(
      'a: b',
      '# x',
      'true',
      '1',
      'null',
      "it's",
      '"q"',
      '*',
      '- x',
      '{a}',
      '[b]',
      'x,y',
      ' ',
      '${A',
      '$$',
      '%',
      '@x',
      '__proto__',
      'constructor',
      '<<',
      'a\u{2028}',
    );
    fc.assert(
      fc.property(fc.uniqueArray(fc.oneof(name, special), { minLength: 1, maxLength: 8 }), (names) => {
        const { models } = load(writeConfig([choose(['a', ...names])]));
        const wanted = ['a', ...names].filter(
          (model) => !/embed|rerank|\$|[^\S ]|^(?:__proto__|<<)$/i.test(model),
        );
        expect(new Set(Object.keys(models))).toEqual(new Set(wanted));
        for (const model of wanted)
          expect(models).toMatchObject({ [model]: { routes: [{ upstream: 'local', model }], free: true } });
      }),
      propertyRun(40),
    );
  });

  test('has the price of the public list where it knows the model, and says what that is today', () => {
    const chosen = choose(
      ['gpt-4o-mini', 'gpt-4o-mini-2024-07-18', 'whisper-1', 'text-embedding-3-small'],
      'https://api.openai.com/v1',
    );
    const text = writeConfig([chosen]);
    expect(text).toContain(
      'gpt-4o-mini: { routes: [{ upstream: local, model: gpt-4o-mini }], price: list } # $0.15 in and $0.60 out',
    );
    expect(Object.keys(load(text).models)).toEqual(['gpt-4o-mini']);
    expect(text).toContain('# local lists 3 more models');
  });

  test('says of a model whose price is not known that clients pay nothing', () => {
    const choice = { models: ['gpt-unheard-of'], price: null };
    expect(writeConfig([choose([], 'https://api.openai.com/v1', choice)])).toMatch(
      /gpt-unheard-of: \{ .*free: true \} # NO PRICE IS KNOWN, so it costs clients nothing: for a price write price: \{/,
    );
  });

  test('has the price of the name that the operator gives for models that the list does not know', () => {
    const text = writeConfig([choose(['qwen'], ownUrl, { models: [], price: 'openai/gpt-4o-mini' })]);
    expect(text).toContain('price: { list: openai/gpt-4o-mini } } # $0.15 in and $0.60 out');
    expect(() => choose(['qwen'], ownUrl, { models: [], price: 'openai/gpt-4o-mimi' })).toThrow(
      "--price: the list of prices has no model 'gpt-4o-mimi' of openai; it has gpt-4o-mini",
    );
  });

  test('has at most 50 models of an upstream, and says how many more it lists', () => {
    const text = writeConfig([
      choose(['x'.repeat(2_000), ...Array.from({ length: 5_000 }, (_, index) => `m${index}`)]),
    ]);
    expect(Object.keys(load(text).models)).toHaveLength(50);
    expect(text).toContain('# local lists 4950 more models, which can be added in the same way.');
  });

  test('names a model after its upstream, too, where another one has its name', () => {
    const second = chooseModels(
      listing(['a'], 'http://127.0.0.1:9001/v1', 'other'),
      ownChoice,
      new Set(['a']),
    );
    expect(Object.keys(load(writeConfig([choose(['a']), second])).models)).toEqual(['a', 'other/a']);
  });

  test('leaves the usual ports to upstreams on this machine that have them', () => {
    const at = (port: number, name: string) =>
      chooseModels(listing(['a'], `http://127.0.0.1:${port}/v1`, name), ownChoice, new Set([`a`]));
    const { server, admin } = load(writeConfig([at(8080, 'one'), at(8081, 'two'), at(8090, 'three')]));
    expect([server.port, admin.port]).toEqual([8100, 8091]);
    const elsewhere = load(writeConfig([choose(['a'], 'http://gpu.example:8080/v1')]));
    expect(elsewhere.server.port).toBe(8080);
  });
});

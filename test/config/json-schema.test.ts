import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { configSchema } from '../../src/config/schema/json-schema.ts';
import type { ConfigInput } from '../../src/config/schema/schema.ts';
import { generatedFile } from '../support/generated-file.ts';

type JsonSchema = z.core.JSONSchema.BaseSchema;

const root = join(import.meta.dirname, '..', '..');
const schema = configSchema();
const example = readFileSync(join(root, 'config/textgate.example.yaml'), 'utf8');

/** Every key of a JSON Schema with its path, those in `anyOf`, lists and records included. */
function keysOf(json: JsonSchema, path: string): readonly (readonly [path: string, schema: JsonSchema])[] {
  const properties = Object.entries(json.properties ?? {}) as [string, JsonSchema][];
  const inner = [json.items, json.additionalProperties, ...(json.anyOf ?? [])].filter(
    (each): each is JsonSchema => typeof each === 'object' && !Array.isArray(each),
  );
  return [
    ...properties.map(([key, value]) => [`${path}${key}`, value] as const),
    ...properties.flatMap(([key, value]) => keysOf(value, `${path}${key}.`)),
    ...inner.flatMap((each) => keysOf(each, path)),
  ];
}

/** Whether an editor with this schema accepts a value. */
const accepts = (value: unknown): boolean => z.fromJSONSchema(schema).safeParse(value).success;

const upstreams = { local: { url: 'http://127.0.0.1:8000/v1' } };
const models = { from: 'local' };

test('the first model of the example config, which the greeting names, is served by the built-in demo', () => {
  const { models: offered, upstreams: named } = parse(example) as ConfigInput;
  const [first] = Object.values(offered as Record<string, { routes: { upstream: string }[] }>);
  expect(named[first?.routes[0]?.upstream ?? '']?.url).toBe('demo:');
});

describe('the JSON Schema of a config file', () => {
  test('describes every key in a sentence, and says its default or gives an example unless it is an object', () => {
    const keys = keysOf(schema, '');
    expect(keys.length).toBeGreaterThan(60);
    expect(keys.filter(([, { description }]) => !/^\S.+[.]$/.test(description ?? ''))).toEqual([]);
    const bare = keys.filter(
      ([, key]) => key.type !== 'object' && key.default === undefined && key.examples === undefined,
    );
    expect(bare).toEqual([]);
  });

  test('is in the file that the example names for editors', () => {
    const file = 'config/textgate.schema.json';
    const content = `${JSON.stringify(schema, null, 2)}\n`;
    expect(generatedFile(file, content)).toBe(content);
    const [line = ''] = example.split('\n');
    expect(line).toBe('# yaml-language-server: $schema=./textgate.schema.json');
  });

  test('accepts the example, references, prices as numbers, and headers in any case', () => {
    expect(accepts(parse(example))).toBe(true);
    expect(
      accepts({
        server: { port: '${PORT}', drain: '${DRAIN}', maxBody: '${MAX}' },
        admin: { token: '${T}' },
        storage: { url: '${DB}', durability: '${D}' },
        upstreams: {
          local: { ...upstreams.local, headers: { Authorization: 'x' }, allowLinkLocal: '${X}' },
        },
        models: {
          small: { routes: [{ upstream: 'local', model: 'm' }], price: { input: 0.15, output: '0.6' } },
        },
      }),
    ).toBe(true);
  });

  test.each<[string, object]>([
    ['an unknown key', { prot: 1 }],
    ['a port that is text', { server: { port: 'http' } }],
    ['a duration without a unit', { server: { drain: '25' } }],
    ['a size in another unit', { server: { maxBody: '1MB' } }],
    ['another word than the known ones', { storage: { durability: 'some' } }],
    ['a price in another currency', { limits: { lowBalance: '1 EUR' } }],
  ])('marks %s', (_name, change) => {
    expect(accepts({ upstreams, models })).toBe(true);
    expect(accepts({ upstreams, models, ...change })).toBe(false);
  });
});

import { expect, test } from 'vitest';
import { isTooDeep, maxJsonDepth } from '../../src/protocol/json-depth.ts';

const bytes = (text: string) => new TextEncoder().encode(text);
const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);

test.each([
  ['the bound itself', nested(maxJsonDepth), false],
  ['one over it', nested(maxJsonDepth + 1), true],
  ['half a million levels, never closed', '['.repeat(500_000), true],
  ['objects and arrays together', '{"a":['.repeat(33) + ']}'.repeat(33), true],
  ['many side by side', `[${Array.from({ length: 1_000 }, () => '[]').join(',')}]`, false],
  ['brackets in a string', `"${'['.repeat(100)}"`, false],
  ['brackets behind an escaped quote', String.raw`"\"${'['.repeat(100)}"`, false],
  ['brackets behind an escaped backslash', String.raw`"\\",${'['.repeat(100)}`, true],
  ['text of several bytes', `"ü🌍${'{'.repeat(100)}"`, false],
])('the depth of %s is told', (_name, text, tooDeep) => {
  expect(isTooDeep(bytes(text))).toBe(tooDeep);
});

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { findExcess, maxJsonDepth, maxJsonEntries } from '../../src/protocol/json-depth.ts';
import { propertyRun } from '../support/property-run.ts';

const isTooDeep = (text: Uint8Array): boolean => findExcess(text) === 'depth';
const bytes = (text: string) => new TextEncoder().encode(text);
const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);

/** Strings with an escaped quote after each number of bytes around those that are read one by one. */
const quotesAtEveryDistance = Array.from(
  { length: 140 },
  (_, distance) => `"${'x'.repeat(distance)}\\"["`,
).join();

test.each([
  ['a document at the limit', nested(maxJsonDepth), false],
  ['a document one level deeper', nested(maxJsonDepth + 1), true],
  ['half a million levels, never closed', '['.repeat(500_000), true],
  ['objects and arrays together', '{"a":['.repeat(33) + ']}'.repeat(33), true],
  ['many arrays side by side', `[${Array.from({ length: 1_000 }, () => '[]').join(',')}]`, false],
  ['brackets in a string', `"${'['.repeat(100)}"`, false],
  ['brackets after an escaped quote', String.raw`"\"${'['.repeat(100)}"`, false],
  ['brackets after an escaped backslash', String.raw`"\\",${'['.repeat(100)}`, true],
  ['brackets in a long string', `"${'['.repeat(1_000)}"`, false],
  ['brackets after a long string', `"${'text '.repeat(100)}",${'['.repeat(100)}`, true],
  ['brackets after a late escaped quote', String.raw`"${'text '.repeat(100)}\"${'['.repeat(100)}"`, false],
  ['brackets after a run of escaped backslashes', `"${'\\\\'.repeat(50)}",${'['.repeat(100)}`, true],
  ['brackets after a run that escapes a quote', `"${'\\\\'.repeat(50)}\\"${'['.repeat(100)}"`, false],
  ['brackets after an escaped quote at every distance', quotesAtEveryDistance + '['.repeat(100), true],
  ['brackets in a long string without an end', `"${'text ['.repeat(100)}`, false],
  ['multi-byte text', `"ü🌍${'{'.repeat(100)}"`, false],
])('isTooDeep judges %s', (_name, text, tooDeep) => {
  expect(isTooDeep(bytes(text))).toBe(tooDeep);
});

/** A simple implementation, one byte at a time, to compare with. */
function isTooDeepByState(text: Uint8Array): boolean {
  let depth = 0;
  let inString = false;
  let isEscaped = false;
  for (const byte of text) {
    const character = String.fromCharCode(byte);
    if (isEscaped) isEscaped = false;
    else if (inString) {
      if (character === '\\') isEscaped = true;
      else if (character === '"') inString = false;
    } else if (character === '"') inString = true;
    else if ('[{'.includes(character)) depth++;
    else if (']}'.includes(character)) depth--;
    if (depth > maxJsonDepth) return true;
  }
  return false;
}

test('isTooDeep agrees with a byte-by-byte reader for any bytes', () => {
  const piece = fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom('[', '{', '[{', '[[[[', '{"a":[', '["x",') },
    { weight: 2, arbitrary: fc.constantFrom(']', '}', '"[[["', '""', 'x', '\\') },
    { weight: 1, arbitrary: fc.oneof(fc.constantFrom('"', '\\"', '"\\'), fc.string()) },
    // Longer than what is read byte by byte, so that the native search finds the quotes, escaped or not.
    {
      weight: 1,
      arbitrary: fc.constantFrom('text, '.repeat(12), '\\'.repeat(81), '\\'.repeat(82), '\\n'.repeat(40)),
    },
  );
  const mixed = fc.array(piece, { minLength: 20, maxLength: 150, size: 'max' });
  const found = { true: 0, false: 0 };
  fc.assert(
    fc.property(
      fc.oneof(
        mixed.map((pieces) => bytes(pieces.join(''))),
        fc.uint8Array(),
      ),
      (text) => {
        const expected = isTooDeepByState(text);
        found[`${expected}`]++;
        expect(isTooDeep(text)).toBe(expected);
      },
    ),
    propertyRun(2_000),
  );
  expect(Math.min(found.true, found.false)).toBeGreaterThan(100);
});

/** The bytes of a text, which count how often one is read, and how often the native search is begun. */
function countedBytes(text: string) {
  const counts = { reads: 0, searches: 0 };
  const counted = new Proxy(bytes(text), {
    get(target, name) {
      counts.reads++;
      if (name === 'indexOf') counts.searches++;
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
  return { counted, counts };
}

test.each([
  ['backslashes', `"${'\\\\'.repeat(1_000)}"`],
  ['escaped quotes', `"${'\\"'.repeat(1_000)}"`],
  ['empty strings', '""'.repeat(1_000)],
  ['strings without an end', `${'text '.repeat(400)}"${'text '.repeat(400)}`],
])('isTooDeep reads each byte a few times at most, in text of nothing but %s', (_name, text) => {
  const { counted, counts } = countedBytes(text);
  expect(isTooDeep(counted)).toBe(false);
  expect(counts.reads).toBeLessThan(4 * text.length);
});

test.each([0, 1, 15, 16, 17, 30, 60])(
  'isTooDeep begins no native search, which costs more than it saves, where a quote comes after %i bytes',
  (distance) => {
    const piece = 'x'.repeat(distance);
    for (const text of [`"${`${piece}\\"`.repeat(200)}"`, `"${piece}",`.repeat(200)]) {
      const { counted, counts } = countedBytes(text);
      expect(isTooDeep(counted)).toBe(false);
      expect(counts.searches).toBe(0);
    }
  },
);

test.each([
  [63, 0],
  [64, 200],
])(
  'isTooDeep begins the native search once 64 bytes of a string have no quote: one after %i bytes takes %i of 200 searches',
  (distance, searches) => {
    const { counted, counts } = countedBytes(`"${'x'.repeat(distance)}",`.repeat(200));
    expect(isTooDeep(counted)).toBe(false);
    expect(counts.searches).toBe(searches);
  },
);

test('isTooDeep reads long text with the native search, also with line feeds in it', () => {
  const text = `"${'some words of a line\\n'.repeat(1_000)}"`;
  const { counted, counts } = countedBytes(text);
  expect(isTooDeep(counted)).toBe(false);
  expect(counts.searches).toBe(1);
  expect(counts.reads).toBeLessThan(100);
});

test.each([
  ['an array at the limit', `[${'1,'.repeat(maxJsonEntries - 1)}1]`, null],
  ['an array with an entry more', `[${'1,'.repeat(maxJsonEntries)}1]`, 'entries'],
  ['empty arrays, never closed', '[[],'.repeat(10) + '[],'.repeat(maxJsonEntries), 'entries'],
  ['an object of many fields', `{${'"a":1,'.repeat(maxJsonEntries)}"a":1}`, 'entries'],
  ['commas in a string', `"${','.repeat(maxJsonEntries + 1)}"`, null],
])('findExcess judges %s', (_name, text, excess) => {
  expect(findExcess(bytes(text))).toBe(excess);
});

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { findJsonFault } from '../../src/protocol/json-fault.ts';
import { propertyRun } from '../support/property-run.ts';

const found = (text: string): string | null => {
  const fault = findJsonFault(text);
  return fault === null ? null : `${fault.line}:${fault.column} ${fault.what}`;
};

describe('the first fault of a text that is not JSON', () => {
  test.each([
    ['{"a": 1,}', "1:8 a comma before the closing '}'"],
    ['{"a": [1, 2 , ]}', "1:13 a comma before the closing ']'"],
    ['{\n  "a": 1\n  "b": 2\n}', '3:3 a comma is missing before this place'],
    ['{"a" 1}', '1:6 a colon is missing after a name'],
    ["{'a': 1}", '1:2 a single quote, but JSON takes only double quotes'],
    ['{"a": \'x\'}', '1:7 a single quote, but JSON takes only double quotes'],
    ['{“a”: 1}', '1:2 a typographic quote, but JSON takes only the plain double quote'],
    ['{model: 1}', '1:2 a name without double quotes, which a shell may have removed'],
    ['{"model": small}', '1:11 a word without double quotes, which a shell may have removed'],
    ['{"a": None}', '1:7 the word None, which is null in JSON'],
    ['{"a": True}', '1:7 the word True, which is true in JSON'],
    ['{"a": -Infinity}', '1:7 the word Infinity, which JSON does not have'],
    ['{"a": constructor}', '1:7 a word without double quotes, which a shell may have removed'],
    ['{"a": 1 // x\n}', '1:9 a comment, which JSON does not have'],
    ['[ # x\n1]', '1:3 a comment, which JSON does not have'],
    ['model=small', '1:1 the body does not begin like JSON'],
    ['{"a": 01}', '1:7 a number in a form that JSON does not have'],
    ['{"a": +1}', '1:7 a number that begins with a plus sign or a point'],
    ['{"a": 1.}', '1:7 a number in a form that JSON does not have'],
    ['{\\"a\\": 1}', '1:2 a backslash outside of a string: the body may have been escaped twice'],
    ['{"a": "x\ny"}', String.raw`1:9 a line break in a string: write \n for it`],
    ['{"a": "x\ty"}', String.raw`1:9 a control character in a string: write it as \t or \u0000`],
    [
      String.raw`{"a": "C:\dir"}`,
      String.raw`1:10 a backslash that begins no JSON escape: write \\ for itself`,
    ],
    [String.raw`{"a": "\u12"}`, String.raw`1:8 a backslash that begins no JSON escape: write \\ for itself`],
    ['{"a": "x', '1:7 a string that begins here is never closed'],
    ['{"a": [1,\r\n2', '2:2 the text ends before the JSON value is complete'],
    ['{"a"', '1:5 the text ends before the JSON value is complete'],
    ['{', '1:2 the text ends before the JSON value is complete'],
    ['{"a": 1}{"a": 2}', '1:9 more text after the end of the JSON value'],
    ['{"a": }', '1:7 a value is missing here'],
    ['{, "a": 1}', '1:2 a value is missing here'],
    ['{1: 2}', '1:2 a name in double quotes is missing here'],
    ['{"a": 1;}', "1:8 a comma or the closing '}' is missing before this place"],
    ['<html>', '1:1 the body does not begin like JSON'],
    ['[<html>]', '1:2 a character that begins no JSON value'],
    ['', '1:1 the text ends before the JSON value is complete'],
  ])('%s is at %s', (text, fault) => {
    expect(found(text)).toBe(fault);
  });

  const damage = `{}[]",:'\\0-.eEtfn \n\t\u0000é`;
  /** JSON texts with some of their characters replaced, dropped or added. */
  const damaged = fc
    .tuple(
      fc.json({ maxDepth: 4 }),
      fc.array(fc.tuple(fc.nat(), fc.nat(2), fc.constantFrom(...Array.from(damage))), {
        maxLength: 3,
      }),
    )
    .map(([json, edits]) =>
      edits.reduce((text, [place, dropped, added]) => {
        const at = place % (text.length + 1);
        return text.slice(0, at) + added + text.slice(at + dropped);
      }, json),
    );

  test('is found in exactly those texts that JSON.parse rejects', () => {
    let rejected = 0;
    fc.assert(
      fc.property(damaged, (text) => {
        let isJson = true;
        try {
          JSON.parse(text);
        } catch {
          isJson = false;
          rejected++;
        }
        expect(findJsonFault(text) === null).toBe(isJson);
      }),
      propertyRun(5_000),
    );
    expect(rejected).toBeGreaterThan(500);
  });
});

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { nearestName } from '../../src/shared/nearest-name.ts';
import { propertyRun } from '../support/property-run.ts';

describe('the nearest name', () => {
  test.each([
    ['temprature', ['top_p', 'temperature'], 'temperature'],
    ['Server', ['limits', 'server'], 'server'],
    ['maxbody', ['host', 'maxBody'], 'maxBody'],
    ['firsBite', ['firstByte', 'idle'], 'firstByte'],
    ['lokal', ['remote', 'local'], 'local'],
    ['ab', ['abc', 'ab'], 'ab'],
    ['on', ['one', 'none'], 'one'],
  ])('to %s among %j is %s', (wrong, known, nearest) => {
    expect(nearestName(wrong, known)).toBe(nearest);
  });

  test.each([
    ['timeouts', ['url', 'apiKey']],
    ['abcdefgh', ['abcd']],
    ['xy', ['ab']],
    ['', ['a']],
    ['server', []],
  ])('to %j among %j is null: a distant name is no help', (wrong, known) => {
    expect(nearestName(wrong, known)).toBeNull();
  });

  test('is found after any single edit of a long name', () => {
    const name = fc.stringMatching(/^[a-z]{6,12}$/);
    fc.assert(
      fc.property(name, fc.nat(), fc.constantFrom('drop', 'swap', 'insert'), (known, at, edit) => {
        const index = at % known.length;
        const kept = known.slice(index + (edit === 'insert' ? 0 : 1));
        const wrong = known.slice(0, index) + (edit === 'drop' ? '' : '_') + kept;
        expect(nearestName(wrong, ['0123456789', known, '9876543210'])).toBe(known);
      }),
      propertyRun(),
    );
  });
});

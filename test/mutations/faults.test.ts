import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { mutations } from './all-faults.ts';
import { knownSurvivors } from './known-survivors.ts';
import { mutantsOf, placeOf } from './mutants.ts';

const root = join(import.meta.dirname, '..', '..');

test('each deliberate fault fits the sources in one place, and has a name of its own', () => {
  const misfits = mutations.filter(({ file, find, replace }) => {
    const places = readFileSync(join(root, file), 'utf8').split(find).length - 1;
    return places !== 1 || find === replace;
  });
  expect(misfits.map(({ name }) => name)).toEqual([]);
  expect(new Set(mutations.map(({ name }) => name)).size).toBe(mutations.length);
});

test('each random fault that is known to survive fits the sources', () => {
  const misfits = knownSurvivors.filter(({ file, line, change }) => {
    const source = readFileSync(join(root, file), 'utf8');
    return !mutantsOf(source)
      .map((mutant) => placeOf(source, mutant))
      .some((place) => place.lineText === line && place.change === change);
  });
  expect(misfits).toEqual([]);
});

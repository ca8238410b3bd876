import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Roster } from '../../src/shared/roster.ts';
import type { Position } from '../../src/shared/roster.ts';
import { propertyRun } from '../support/property-run.ts';

test('a roster has its members in the order of their arrival, wherever others leave', () => {
  fc.assert(
    fc.property(fc.array(fc.option(fc.nat(20)), { maxLength: 60 }), (steps) => {
      const roster = new Roster<number>();
      const places: Position<number>[] = [];
      let expected: number[] = [];
      const wasIn: boolean[][] = [];
      for (const [number, leaving] of steps.entries()) {
        const position = leaving === null ? undefined : places[leaving];
        if (position === undefined) {
          places.push(roster.add(number));
          expected.push(number);
        } else {
          wasIn.push([roster.remove(position), expected.includes(position.member)]);
          expected = expected.filter((member) => member !== position.member);
        }
        expect(roster.all()).toEqual(expected);
        expect([roster.size, roster.first?.member]).toEqual([expected.length, expected[0]]);
      }
      expect(wasIn.filter(([found, shouldBe]) => found !== shouldBe)).toEqual([]);
    }),
    propertyRun(300),
  );
});

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { FairLine } from '../../../src/domain/rooms/fair-line.ts';
import type { Ticket } from '../../../src/domain/rooms/fair-line.ts';
import { LoadSum } from '../../../src/domain/rooms/load.ts';
import { propertyRun } from '../../support/property-run.ts';

/** A line whose members have as many tokens as their names have letters, so that sums of them differ. */
function lineOf(): FairLine<string> {
  return new FairLine(({ length }) => ({ input: length, output: 1 }));
}

/** Serves all members of a line. */
function serveAll(line: FairLine<string>): readonly string[] {
  const served: string[] = [];
  for (let head = line.head(); head !== null; head = line.head()) {
    line.serve(head);
    served.push(head.member);
  }
  return served;
}

test('a key that was idle has no claim on what others used meanwhile', () => {
  const line = lineOf();
  for (let count = 0; count < 10; count++) line.serveAtOnce('a', 1, 1);
  for (const member of ['a1', 'b1', 'a2', 'b2', 'b3', 'a3']) line.join(member.slice(0, 1), 1, 1, member);
  expect(serveAll(line)).toEqual(['b1', 'a1', 'b2', 'a2', 'b3', 'a3']);
});

test('a key pays for what it was served before others came, as long as something is in progress', () => {
  const line = lineOf();
  line.serveAtOnce('a', 1, 1);
  for (const member of ['a1', 'b1']) line.join(member.slice(0, 1), 1, 1, member);
  expect(serveAll(line)).toEqual(['b1', 'a1']);
  line.forget();
  for (const member of ['a2', 'b2']) line.join(member.slice(0, 1), 1, 1, member);
  expect(serveAll(line)).toEqual(['a2', 'b2']);
});

test('keys without members are forgotten above a thousand, and those that wait are not', () => {
  const line = lineOf();
  line.join('waits', 1, 1, 'first');
  for (let key = 0; key < 5_000; key++) line.serveAtOnce(`key${key}`, 1, 1);
  expect(line.keys).toBeLessThanOrEqual(1_001);
  expect(line.size).toBe(1);
  expect(serveAll(line)).toEqual(['first']);
});

test('a member that leaves unserved costs its key nothing', () => {
  const line = lineOf();
  for (let count = 0; count < 5; count++) line.leave(line.join('a', 1, 1, 'gone'));
  for (const member of ['a1', 'b1']) line.join(member.slice(0, 1), 1, 1, member);
  expect(serveAll(line)).toEqual(['a1', 'b1']);
});

test('a member leaves or is served once', () => {
  const line = lineOf();
  const ticket = line.join('a', 1, 1, 'one');
  expect([line.leave(ticket), line.leave(ticket), line.serve(ticket)]).toEqual([true, false, false]);
  expect([line.size, line.head()]).toEqual([0, null]);
});

/** What happens to a line: a member joins, is served, leaves, or its key's charge is corrected. */
const step = fc.record({
  do: fc.constantFrom('join', 'join', 'join', 'serve', 'leave', 'correct', 'serve at once', 'forget'),
  key: fc.nat(5),
  cost: fc.integer({ min: 1, max: 9 }),
  which: fc.nat(),
});
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

function play(line: FairLine<string>, waiting: Ticket<string>[], { do: what, key, cost, which }: Step): void {
  const keyId = 'abcdef'[key] ?? 'a';
  const at = which % Math.max(1, waiting.length);
  if (what === 'join')
    waiting.push(line.join(keyId, 1 + (key % 3), cost, `${keyId}${'x'.repeat(which % 20)}`));
  if (what === 'serve at once') line.serveAtOnce(keyId, 1 + (key % 3), cost);
  if (what === 'correct') line.correct(keyId, cost - 5);
  if (what === 'forget' && which % 5 === 0) line.forget();
  const head = what === 'serve' ? line.head() : null;
  if (head !== null) line.serve(head);
  if (head !== null) waiting.splice(waiting.indexOf(head), 1);
  if (what === 'leave') for (const gone of waiting.splice(at, 1)) line.leave(gone);
}

test('what is ahead of a member is what is served before, asked for it alone or for all at once', () => {
  let asked = 0;
  fc.assert(
    fc.property(fc.array(step, { minLength: 10, maxLength: 80 }), (steps) => {
      const line = lineOf();
      const waiting: Ticket<string>[] = [];
      for (const taken of steps) {
        play(line, waiting, taken);
        const all = line.loadsAhead();
        expect(all.size).toBe(waiting.length);
        for (const ticket of waiting) expect(all.get(ticket)).toEqual(line.loadAhead(ticket));
        asked += waiting.length;
      }
      const loads = new Map(waiting.map((ticket) => [ticket, line.loadsAhead().get(ticket)]));
      const served = new LoadSum();
      expect(line.load.requests).toBe(waiting.length);
      for (let head = line.head(); head !== null; head = line.head()) {
        expect(served).toEqual(loads.get(head));
        served.add({ input: head.member.length, output: 1 });
        line.serve(head);
      }
      expect(line.load).toEqual(new LoadSum());
    }),
    propertyRun(300),
  );
  // What never waits is not compared.
  expect(asked).toBeGreaterThan(1_000);
});

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { FairQueue } from '../../../src/domain/upstream-limiter/fair-queue.ts';
import type { Ticket } from '../../../src/domain/upstream-limiter/key-queue.ts';
import { noLanes } from '../../../src/domain/upstream-limiter/lanes.ts';
import { LoadSum } from '../../../src/domain/upstream-limiter/load.ts';
import { propertyRun } from '../../support/property-run.ts';

/** A queue whose members have as many tokens as their names have letters, so that sums of them differ. */
function queueOf(): FairQueue<string> {
  return new FairQueue(({ length }) => ({ input: length, output: 1 }));
}

/** What is ahead of each member, where no lane is held. */
function aheadOf(queue: FairQueue<string>) {
  return queue.loadsAhead(() => ({ held: noLanes }), 0);
}

/** Serves all members of a queue. */
function serveAll(queue: FairQueue<string>): readonly string[] {
  const served: string[] = [];
  for (let head = queue.head(); head !== null; head = queue.head()) {
    queue.serve(head);
    served.push(head.member);
  }
  return served;
}

test('a key that was idle has no claim on what others used meanwhile', () => {
  const queue = queueOf();
  for (let count = 0; count < 10; count++) queue.serveAtOnce('a', 1, 1);
  for (const member of ['a1', 'b1', 'a2', 'b2', 'b3', 'a3']) queue.join(member.slice(0, 1), 1, 1, member);
  expect(serveAll(queue)).toEqual(['b1', 'a1', 'b2', 'a2', 'b3', 'a3']);
});

test('a key pays for what it was served before others came, as long as something is in progress', () => {
  const queue = queueOf();
  queue.serveAtOnce('a', 1, 1);
  for (const member of ['a1', 'b1']) queue.join(member.slice(0, 1), 1, 1, member);
  expect(serveAll(queue)).toEqual(['b1', 'a1']);
  queue.forget();
  for (const member of ['a2', 'b2']) queue.join(member.slice(0, 1), 1, 1, member);
  expect(serveAll(queue)).toEqual(['a2', 'b2']);
});

test('keys without members are forgotten above a thousand, and those that wait are not', () => {
  const queue = queueOf();
  queue.join('waits', 1, 1, 'first');
  for (let key = 0; key < 5_000; key++) queue.serveAtOnce(`key${key}`, 1, 1);
  expect(queue.keys).toBeLessThanOrEqual(1_001);
  expect(queue.size).toBe(1);
  expect(serveAll(queue)).toEqual(['first']);
});

test('a member that leaves unserved costs its key nothing', () => {
  const queue = queueOf();
  for (let count = 0; count < 5; count++) queue.leave(queue.join('a', 1, 1, 'gone'));
  for (const member of ['a1', 'b1']) queue.join(member.slice(0, 1), 1, 1, member);
  expect(serveAll(queue)).toEqual(['a1', 'b1']);
});

test('a correction is of what a key has to pay off: one that had paid already neither gains nor loses', () => {
  // The first request of the key began long ago: others were served far more meanwhile.
  for (const corrected of [-9, 0, 50]) {
    const queue = queueOf();
    queue.serveAtOnce('a', 1, 10);
    for (let count = 0; count < 10; count++) queue.serveAtOnce('b', 1, 10);
    for (const member of ['a1', 'b1', 'a2']) queue.join(member.slice(0, 1), 1, 10, member);
    queue.correct('a', corrected);
    expect(serveAll(queue), `corrected by ${corrected}`).toEqual(['a1', 'b1', 'a2']);
  }
});

test('a member leaves or is served once', () => {
  const queue = queueOf();
  const ticket = queue.join('a', 1, 1, 'one');
  expect([queue.leave(ticket), queue.leave(ticket), queue.serve(ticket)]).toEqual([true, false, false]);
  expect([queue.size, queue.head()]).toEqual([0, null]);
});

/** What happens to a queue: a member joins, is served, leaves, or its key's charge is corrected. */
const step = fc.record({
  do: fc.constantFrom('join', 'join', 'join', 'serve', 'leave', 'correct', 'serve at once', 'forget'),
  key: fc.nat(5),
  cost: fc.integer({ min: 1, max: 9 }),
  which: fc.nat(),
});
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

function play(
  queue: FairQueue<string>,
  waiting: Ticket<string>[],
  { do: what, key, cost, which }: Step,
): void {
  const keyId = 'abcdef'[key] ?? 'a';
  const at = which % Math.max(1, waiting.length);
  if (what === 'join')
    waiting.push(queue.join(keyId, 1 + (key % 3), cost, `${keyId}${'x'.repeat(which % 20)}`));
  if (what === 'serve at once') queue.serveAtOnce(keyId, 1 + (key % 3), cost);
  if (what === 'correct') queue.correct(keyId, cost - 5);
  if (what === 'forget' && which % 5 === 0) queue.forget();
  const head = what === 'serve' ? queue.head() : null;
  if (head !== null) queue.serve(head);
  if (head !== null) waiting.splice(waiting.indexOf(head), 1);
  if (what === 'leave') for (const gone of waiting.splice(at, 1)) queue.leave(gone);
}

test('what is ahead of a member is what is served before, asked for it alone or for all at once', () => {
  let asked = 0;
  fc.assert(
    fc.property(fc.array(step, { minLength: 10, maxLength: 80 }), (steps) => {
      const queue = queueOf();
      const waiting: Ticket<string>[] = [];
      for (const taken of steps) {
        play(queue, waiting, taken);
        const all = aheadOf(queue);
        expect(all.size).toBe(waiting.length);
        for (const ticket of waiting) expect(all.get(ticket)).toEqual(queue.loadAhead(ticket, noLanes));
        asked += waiting.length;
      }
      const loads = new Map(waiting.map((ticket) => [ticket, aheadOf(queue).get(ticket)]));
      const served = new LoadSum();
      expect(queue.load.requests).toBe(waiting.length);
      for (let head = queue.head(); head !== null; head = queue.head()) {
        expect(served).toEqual(loads.get(head)?.all);
        served.add({ input: head.member.length, output: 1 });
        queue.serve(head);
      }
      expect(queue.load).toEqual(new LoadSum());
    }),
    propertyRun(300),
  );
  // What never waits is not compared.
  expect(asked).toBeGreaterThan(1_000);
});

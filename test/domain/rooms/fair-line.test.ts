import { expect, test } from 'vitest';
import { FairLine } from '../../../src/domain/rooms/fair-line.ts';

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
  const line = new FairLine<string>();
  for (let count = 0; count < 10; count++) line.serveAtOnce('a', 1, 1);
  for (const member of ['a1', 'b1', 'a2', 'b2', 'b3', 'a3']) line.join(member.slice(0, 1), 1, 1, member);
  expect(serveAll(line)).toEqual(['b1', 'a1', 'b2', 'a2', 'b3', 'a3']);
});

test('a key pays for what it was served before others came, as long as something is in progress', () => {
  const line = new FairLine<string>();
  line.serveAtOnce('a', 1, 1);
  for (const member of ['a1', 'b1']) line.join(member.slice(0, 1), 1, 1, member);
  expect(serveAll(line)).toEqual(['b1', 'a1']);
  line.forget();
  for (const member of ['a2', 'b2']) line.join(member.slice(0, 1), 1, 1, member);
  expect(serveAll(line)).toEqual(['a2', 'b2']);
});

test('keys without members are forgotten above a thousand, and those that wait are not', () => {
  const line = new FairLine<string>();
  line.join('waits', 1, 1, 'first');
  for (let key = 0; key < 5_000; key++) line.serveAtOnce(`key${key}`, 1, 1);
  expect(line.keys).toBeLessThanOrEqual(1_001);
  expect(line.size).toBe(1);
  expect(serveAll(line)).toEqual(['first']);
});

test('a member that leaves unserved costs its key nothing', () => {
  const line = new FairLine<string>();
  for (let count = 0; count < 5; count++) line.leave(line.join('a', 1, 1, 'gone'));
  for (const member of ['a1', 'b1']) line.join(member.slice(0, 1), 1, 1, member);
  expect(serveAll(line)).toEqual(['a1', 'b1']);
});

test('a member leaves or is served once', () => {
  const line = new FairLine<string>();
  const ticket = line.join('a', 1, 1, 'one');
  expect([line.leave(ticket), line.leave(ticket), line.serve(ticket)]).toEqual([true, false, false]);
  expect([line.size, line.head()]).toEqual([0, null]);
});

test('those ahead are those that are served before', () => {
  const line = new FairLine<string>();
  const members = ['a1', 'a2', 'b1', 'a3', 'c1', 'b2', 'c2'];
  const tickets = members.map((member) => line.join(member.slice(0, 1), 1, 1, member));
  const ahead = new Map(
    members.map((member, at) => [member, line.ahead(tickets[at] as (typeof tickets)[0])]),
  );
  const order = serveAll(line);
  for (const [member, others] of ahead)
    expect(others.map((other) => other.member).toSorted()).toEqual(
      order.slice(0, order.indexOf(member)).toSorted(),
    );
});

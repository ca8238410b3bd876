import { expect, test } from 'vitest';
import { createAdminAccess, sessionMs } from '../../src/http/admin/access.ts';
import { createFakeClock } from '../support/fake-clock.ts';

const tokens = { admin: 'the-token-of-an-admin', readOnly: 'the-token-of-a-reader' };

test('a session counts until its end, and not a moment longer', () => {
  const clock = createFakeClock();
  const access = createAdminAccess(tokens, clock);
  const { proof, session } = access.openSession('admin');
  clock.advance(sessionMs - 1_000);
  expect(access.findSession(proof)).toEqual(session);
  clock.advance(1_000);
  expect(access.findSession(proof)).toBeNull();
});

test('a session counts on every node with the same tokens, and a logout on the node that got it', () => {
  const clock = createFakeClock();
  const [one, other] = [createAdminAccess(tokens, clock), createAdminAccess(tokens, clock)];
  const { proof, session } = one.openSession('read_only');
  expect(other.findSession(proof)).toEqual(session);
  one.endSession(session);
  expect(one.findSession(proof)).toBeNull();
  expect(other.findSession(proof)).toEqual(session);
});

test('another token ends all sessions of the former one, and leaves those of the other role', () => {
  const clock = createFakeClock();
  const before = createAdminAccess(tokens, clock);
  const [admin, reader] = [before.openSession('admin').proof, before.openSession('read_only').proof];
  const newAdmin = createAdminAccess({ ...tokens, admin: 'another-token-of-an-admin' }, clock);
  expect([newAdmin.findSession(admin), newAdmin.findSession(reader)?.role]).toEqual([null, 'read_only']);
  const newReader = createAdminAccess({ ...tokens, readOnly: 'another-token-of-a-reader' }, clock);
  expect([newReader.findSession(admin)?.role, newReader.findSession(reader)]).toEqual(['admin', null]);
  const noReader = createAdminAccess({ ...tokens, readOnly: null }, clock);
  expect(noReader.findSession(reader)).toBeNull();
});

test('the role is signed: a reader’s session becomes no admin’s, even where both tokens were the same', () => {
  const clock = createFakeClock();
  const same = 'a-token-that-both-roles-have';
  const access = createAdminAccess({ admin: same, readOnly: same }, clock);
  const { proof } = access.openSession('read_only');
  expect(access.findSession(proof.replace('read_only', 'admin'))).toBeNull();
});

test('a token has its role, and a wrong one has none', () => {
  const access = createAdminAccess(tokens, createFakeClock());
  const given = [tokens.admin, tokens.readOnly, '', `${tokens.admin} `, 'the-token-of-an-admi'];
  expect(given.map((token) => access.roleOf(token))).toEqual(['admin', 'read_only', null, null, null]);
});

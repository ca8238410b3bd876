import { expect, test } from 'vitest';
import { createAdminAccess, sessionMs } from '../../src/http/admin/access.ts';
import type { AdminToken } from '../../src/http/admin/access.ts';
import { createFakeClock } from '../support/fake-clock.ts';

const admin: AdminToken = { name: 'admin.token', role: 'admin', token: 'the-token-of-an-admin' };
const reader: AdminToken = { name: 'admin.readOnlyToken', role: 'read_only', token: 'the-token-of-a-reader' };
const ada: AdminToken = { name: 'ada', role: 'admin', token: 'the-token-of-ada' };
const tokens = [admin, reader, ada];

test('a session counts until its end, and not a moment longer', () => {
  const clock = createFakeClock();
  const access = createAdminAccess(tokens, clock);
  const { proof, session } = access.openSession(admin);
  clock.advance(sessionMs - 1_000);
  expect(access.findSession(proof)).toEqual(session);
  clock.advance(1_000);
  expect(access.findSession(proof)).toBeNull();
});

test('a session counts on every node with the same tokens, and a logout on the node that got it', () => {
  const clock = createFakeClock();
  const [one, other] = [createAdminAccess(tokens, clock), createAdminAccess(tokens, clock)];
  const { proof, session } = one.openSession(reader);
  expect(other.findSession(proof)).toEqual(session);
  one.endSession(session);
  expect(one.findSession(proof)).toBeNull();
  expect(other.findSession(proof)).toEqual(session);
});

test('another token ends all sessions of the former one, and leaves those of the others', () => {
  const clock = createFakeClock();
  const before = createAdminAccess(tokens, clock);
  const proofs = tokens.map((token) => before.openSession(token).proof);
  const namesFoundBy = (after: readonly AdminToken[]) => {
    const access = createAdminAccess(after, clock);
    return proofs.map((proof) => access.findSession(proof)?.name ?? null);
  };
  expect(namesFoundBy(tokens)).toEqual(['admin.token', 'admin.readOnlyToken', 'ada']);
  const newAdmin = [{ ...admin, token: 'another-token-of-an-admin' }, reader, ada];
  expect(namesFoundBy(newAdmin)).toEqual([null, 'admin.readOnlyToken', 'ada']);
  const newReader = [admin, { ...reader, token: 'another-token-of-a-reader' }, ada];
  expect(namesFoundBy(newReader)).toEqual(['admin.token', null, 'ada']);
  expect(namesFoundBy([admin])).toEqual(['admin.token', null, null]);
});

test('a session is of the token that was given, whatever it claims: the role is signed', () => {
  const clock = createFakeClock();
  const same = 'a-token-that-both-roles-have';
  const sameReader = { ...reader, token: same };
  const access = createAdminAccess([{ ...admin, token: same }, sameReader], clock);
  const { proof } = access.openSession(sameReader);
  expect(access.findSession(proof)).toMatchObject({ name: 'admin.readOnlyToken', role: 'read_only' });
  expect(access.findSession(proof.replace('read_only', 'admin'))).toBeNull();
});

test('a token has its holder, and a wrong one has none', () => {
  const access = createAdminAccess(tokens, createFakeClock());
  const given = [admin.token, reader.token, ada.token, '', `${admin.token} `, 'the-token-of-an-admi'];
  expect(given.map((token) => access.holderOf(token)?.name ?? null)).toEqual([
    'admin.token',
    'admin.readOnlyToken',
    'ada',
    null,
    null,
    null,
  ]);
  expect(access.holderOf(ada.token)).toEqual({ name: 'ada', role: 'admin' });
});

test('other tokens end the sessions of those that are no more, and none that was logged out counts again', () => {
  const access = createAdminAccess(tokens, createFakeClock());
  const sessions = [...tokens, ada].map((token) => access.openSession(token));
  const counting = () => sessions.map(({ proof }) => access.findSession(proof)?.name ?? null);
  const ended: string[] = [];
  for (const { session } of sessions) access.whenEnded(session, () => ended.push(session.name));
  access.whenEnded(reader, () => ended.push('what has the token of the reader'));
  const last = sessions.at(-1)?.session;
  if (last !== undefined) access.endSession(last);
  expect(ended).toEqual(['ada']);
  access.replaceTokens([{ ...ada, name: 'ada of sales' }, admin]);
  expect(counting()).toEqual(['admin.token', null, 'ada of sales', null]);
  expect(ended.slice(1)).toEqual(['admin.readOnlyToken', 'what has the token of the reader']);
});

import { expect, onTestFinished, test } from 'vitest';
import type { PresentedAuditLine } from '../../src/http/present/audit.ts';
import { logIn, sendRaw } from '../support/console-client.ts';
import type { RawRequest } from '../support/console-client.ts';
import { eventually } from '../support/eventually.ts';
import { startGateway } from '../support/test-gateway.ts';

const adasToken = 'the-admin-token-of-ada';

/** A gateway with a login of ada, and what sends a request and returns the one line that it leaves. */
async function open() {
  const gateway = await startGateway({ admin: { tokens: [{ name: 'ada', token: adasToken }] } });
  onTestFinished(() => gateway.close());
  const bearer = ['Authorization', `Bearer ${adasToken}`] as const;
  const lines = async (): Promise<readonly PresentedAuditLine[]> => {
    const { body } = await sendRaw(gateway, { target: '/admin/audit?limit=200', headers: [bearer] });
    return (JSON.parse(body) as { readonly data: readonly PresentedAuditLine[] }).data;
  };
  const { cookie } = await logIn(gateway, adasToken);
  await eventually('the login has a line', async () => (await lines())[0]?.action === 'session.open');
  const refused = async (request: RawRequest): Promise<PresentedAuditLine> => {
    const before = (await lines()).length;
    expect(await sendRaw(gateway, request)).toMatchObject({ status: 401 });
    await eventually('there is a line', async () => (await lines()).length > before);
    const all = await lines();
    expect(all).toHaveLength(before + 1);
    return all[0] as PresentedAuditLine;
  };
  return { refused, bearer, session: ['Cookie', cookie] as const };
}

const foreign = [
  ['Origin', 'http://evil.example'],
  ['Origin', 'null'],
  ['Sec-Fetch-Site', 'cross-site'],
  ['Host', 'evil.example'],
] as const;

test('a change that another page or an unknown host sends has a line, with whose session or token it has', async () => {
  const { refused, session, bearer } = await open();
  const change = { method: 'PATCH', target: '/admin/keys/key_NoKeyHasThis', body: '{"name":"x"}' };
  for (const [proof, way] of [
    [session, 'console'],
    [bearer, 'admin_api'],
  ] as const)
    for (const header of foreign)
      expect(await refused({ ...change, headers: [proof, header] })).toMatchObject({
        way,
        actor: 'ada',
        action: 'key.change',
        key_id: 'key_NoKeyHasThis',
        result: 'invalid_api_key',
      });
});

test('a change with a session and without Origin has a line with its owner', async () => {
  const { refused, session } = await open();
  const request = { method: 'POST', target: '/admin/keys', body: '{"name":"x"}', headers: [session] };
  expect(await refused(request)).toMatchObject({ way: 'console', actor: 'ada', action: 'key.create' });
});

test('a login and a logout from another page have lines', async () => {
  const { refused, session } = await open();
  for (const header of foreign) {
    const target = '/console/session';
    const login = { method: 'POST', target, body: JSON.stringify({ token: adasToken }), headers: [header] };
    expect(await refused(login)).toMatchObject({ way: 'console', actor: null, action: 'session.open' });
    const logout = { method: 'DELETE', target, headers: [session, header] };
    expect(await refused(logout)).toMatchObject({ way: 'console', actor: 'ada', action: 'session.end' });
  }
});

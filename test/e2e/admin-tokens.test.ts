import { expect, onTestFinished, test } from 'vitest';
import { logIn, sendRaw } from '../support/console-client.ts';
import { startGateway } from '../support/test-gateway.ts';

const [adasToken, readersToken] = ['the-admin-token-of-ada', 'the-token-of-a-reader'];

test('each token with a name opens the admin API and sessions of its name, and a reading one changes nothing', async () => {
  const gateway = await startGateway({
    admin: {
      tokens: [
        { name: 'ada', token: adasToken },
        { name: 'grafana', token: readersToken, readOnly: true },
      ],
    },
  });
  onTestFinished(() => gateway.close());
  const statusOf = async (token: string, method: string) =>
    (
      await sendRaw(gateway, {
        method,
        target: '/admin/keys',
        headers: [
          ['Authorization', `Bearer ${token}`],
          ['Content-Type', 'application/json'],
        ],
        ...(method === 'POST' ? { body: '{"name":"made"}' } : {}),
      })
    ).status;
  expect([await statusOf(adasToken, 'GET'), await statusOf(readersToken, 'GET')]).toEqual([200, 200]);
  expect([await statusOf(adasToken, 'POST'), await statusOf(readersToken, 'POST')]).toEqual([201, 403]);
  expect(await statusOf(gateway.adminToken, 'POST')).toBe(201);
  const sessionOf = async (token: string): Promise<unknown> => {
    const { cookie } = await logIn(gateway, token);
    const { body } = await sendRaw(gateway, { target: '/console/session', headers: [['Cookie', cookie]] });
    return JSON.parse(body);
  };
  expect(await sessionOf(adasToken)).toMatchObject({ role: 'admin', name: 'ada' });
  expect(await sessionOf(readersToken)).toMatchObject({ role: 'read_only', name: 'grafana' });
  expect(await sessionOf(gateway.adminToken)).toMatchObject({ role: 'admin', name: 'admin.token' });
});

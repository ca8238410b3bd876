import { beforeEach, expect, test } from 'vitest';
import type { ConfigInput } from '../../src/index.ts';
import { logIn, sendRaw } from '../support/console-client.ts';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { openRaw } from '../support/raw-socket.ts';
import type { RawSocket } from '../support/raw-socket.ts';
import { chatFrames, sendStream } from '../support/scripted-upstream.ts';
import { openStage } from '../support/stage.ts';

type Tokens = NonNullable<NonNullable<ConfigInput['admin']>['tokens']>;

const ada = { name: 'ada', token: 'the-admin-token-of-ada' };
const bob = { name: 'bob', token: 'the-admin-token-of-bob' };
const eve = { name: 'eve', token: 'the-admin-token-of-eve' };
const clock = createFakeClock();
const { upstream, gateway } = await openStage({
  clock,
  limits: { concurrency: 100 },
  admin: { tokens: [ada, bob] },
});
const { host, origin } = new URL(gateway.adminUrl);
const own = (await gateway.gateway.keys.list()).data[0]?.id ?? '';

/** Puts a config with other tokens into force; returns the settings that need a restart. */
function reload(
  tokens: Tokens,
  admin: ConfigInput['admin'] = { token: gateway.adminToken },
): readonly string[] {
  return gateway.gateway.reload({
    server: { port: 0 },
    admin: { port: 0, ...admin, tokens },
    storage: { url: 'sqlite::memory:', durability: 'normal' },
    limits: { requestsPerMinute: 1_000_000, concurrency: 100 },
    upstreams: { local: { url: upstream.url } },
    models: { small: { routes: [{ upstream: 'local', model: 'tiny' }], free: true } },
  });
}

type Proof = readonly [name: string, value: string];

const bearer = ({ token }: { readonly token: string }): Proof => ['Authorization', `Bearer ${token}`];
const session = async ({ token }: { readonly token: string }): Promise<Proof> => [
  'Cookie',
  (await logIn(gateway, token)).cookie,
];
const statusOf = async (...proof: Proof): Promise<number> =>
  (await sendRaw(gateway, { target: '/admin/keys', headers: [proof] })).status;

/** Sends a request, and waits for the beginning of its answer. */
async function begin(first: string, proof: Proof, body: object | null, awaited: string): Promise<RawSocket> {
  const client = openRaw(gateway.adminUrl);
  const text = body === null ? '' : JSON.stringify(body);
  const fields = [`Host: ${host}`, `Origin: ${origin}`, proof.join(': '), 'Accept: text/event-stream'];
  if (body !== null) fields.push('Content-Type: application/json', `Content-Length: ${text.length}`);
  client.socket.write(`${[`${first} HTTP/1.1`, ...fields].join('\r\n')}\r\n\r\n${text}`);
  await eventually('the answer has begun', () => client.text().includes(awaited));
  return client;
}
const tryOut = (proof: Proof): Promise<RawSocket> =>
  begin(
    `POST /admin/try/chat/completions?key=${own}`,
    proof,
    { model: 'small', messages: [{ role: 'user', content: 'hi' }], stream: true },
    '"one"',
  );
const watch = (proof: Proof): Promise<RawSocket> => begin('GET /admin/status', proof, null, 'data: ');

/** Whether an answer has come to its end, or was cut off. */
const hasEnded = (client: RawSocket): boolean => client.isClosed() || client.text().endsWith('\r\n0\r\n\r\n');

beforeEach(() => {
  reload([ada, bob]);
  upstream.play((response) => void sendStream(response, chatFrames(['one']).slice(0, 2)));
});

test('a reload without a token ends its sessions, and what it has in progress, and nothing of others', async () => {
  const [adas, bobs] = [await session(ada), await session(bob)];
  const gone = [await tryOut(adas), await tryOut(bearer(ada))];
  const kept = [
    await tryOut(bobs),
    await tryOut(bearer(bob)),
    await tryOut(bearer({ token: gateway.adminToken })),
  ];
  const watched = [await watch(adas), await watch(bearer(ada))];
  const others = [await watch(bobs), await watch(bearer(bob))];
  expect(reload([bob, eve])).toEqual([]);
  await eventually('its try-outs are cut off', () => gone.every((client) => client.isClosed()));
  await eventually('so are their calls of the upstream', () => upstream.running === kept.length);
  clock.advance(1_000);
  await eventually('it watches no longer', () => watched.every(hasEnded));
  expect([...kept, ...others].map(hasEnded)).toEqual(Array(5).fill(false));
  expect([await statusOf(...adas), await statusOf(...bearer(ada))]).toEqual([401, 401]);
  expect([await statusOf(...bobs), await statusOf(...bearer(bob)), await statusOf(...bearer(eve))]).toEqual([
    200, 200, 200,
  ]);
  for (const client of [...kept, ...others]) client.socket.destroy();
});

test('another text or another right of a token ends what was begun with it', async () => {
  const proofs = [await session(ada), await session(bob)];
  const begun = [await tryOut(proofs[0] as Proof), await tryOut(bearer(bob))];
  reload([
    { ...ada, token: 'another-token-of-ada' },
    { ...bob, readOnly: true },
  ]);
  await eventually('both are cut off', () => begun.every((client) => client.isClosed()));
  expect(await Promise.all(proofs.map((proof) => statusOf(...proof)))).toEqual([401, 401]);
  expect(await statusOf(...bearer(bob))).toBe(200);
});

test('a config that has the admin token once more is refused, and the tokens of the former one stay', async () => {
  const adas = await session(ada);
  const same = { name: 'eve', token: gateway.adminToken };
  expect(() => reload([same], {})).toThrow('expected another token than the admin token');
  expect([await statusOf(...adas), await statusOf(...bearer(ada))]).toEqual([200, 200]);
});

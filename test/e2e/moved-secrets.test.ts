import { describe, expect, onTestFinished, test } from 'vitest';
import { createGateway } from '../../src/gateway.ts';
import type { Gateway } from '../../src/gateway.ts';
import type { ConfigInput } from '../../src/config/schema/schema.ts';

const adminToken = 'an-admin-token-for-tests';
const prepaid = 'sk-Yq3vT9LmW0zKc7Rb1';
const other = 'fd2c9be07a5146d8a3b1';
const third = 'Lw8Zs2Qx6Vb4Nm0Kj5Hg';

/** The secrets of the declared keys, by their names. */
type Keys = Readonly<Record<string, string>>;

function configOf(keys: Keys): ConfigInput {
  return {
    server: { port: 0 },
    admin: { port: 0, token: adminToken },
    storage: { url: 'sqlite::memory:', durability: 'normal' },
    upstreams: { demo: { url: 'demo:' } },
    models: { demo: { routes: [{ upstream: 'demo', model: 'demo' }], price: { input: '1', output: '1' } } },
    keys: Object.fromEntries(Object.entries(keys).map(([name, key]) => [name, { key }])),
  };
}

interface Running {
  readonly gateway: Gateway;
  readonly lines: string[];
  /** Puts other declared keys into force. */
  readonly declare: (keys: Keys) => void;
  /** Asks for a text; resolves with the status. */
  readonly ask: (secret: string) => Promise<number>;
  /** What a key's holder sees of it. */
  readonly own: (secret: string) => Promise<{ readonly id: string; readonly balance: string | null }>;
  /** What the verification of the ledger finds. */
  readonly faults: () => Promise<readonly string[]>;
}

async function start(keys: Keys): Promise<Running> {
  const lines: string[] = [];
  const logDestination = { write: (line: string) => void lines.push(line) };
  const gateway = createGateway(configOf(keys), { logDestination });
  onTestFinished(() => gateway.close());
  const { url, adminUrl } = await gateway.listen();
  const headersOf = (secret: string) => ({
    authorization: `Bearer ${secret}`,
    'content-type': 'application/json',
  });
  return {
    gateway,
    lines,
    declare: (next) => void gateway.reload(configOf(next)),
    async ask(secret) {
      const body = '{"model":"demo","messages":[{"role":"user","content":"x"}]}';
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: headersOf(secret),
        body,
      });
      await response.text();
      return response.status;
    },
    async own(secret) {
      const response = await fetch(`${url}/v1/key`, { headers: headersOf(secret) });
      return (await response.json()) as Awaited<ReturnType<Running['own']>>;
    },
    async faults() {
      const response = await fetch(`${adminUrl}/admin/ledger`, { headers: headersOf(adminToken) });
      return ((await response.json()) as { faults: readonly string[] }).faults;
    },
  };
}

/** Asks until the balance is used up. */
async function useUp({ ask }: Running, secret: string): Promise<void> {
  for (let asked = 0; asked < 20; asked++) if ((await ask(secret)) === 402) return;
  throw new Error('the balance is not used up after 20 requests');
}

/** Ways in which configs move the secret of a used-up key to other names. */
const ways: Readonly<Record<string, readonly Keys[]>> = {
  'is renamed': [{ robert: prepaid }],
  'is removed, and declared under another name later': [{}, { robert: prepaid }],
  'is removed and added again': [{}, { bob: prepaid }],
  'is renamed twice': [{ robert: prepaid }, { rob: prepaid }],
  'is renamed, while its name goes to another key': [{ robert: prepaid, bob: third }],
  'changes secrets with a key without a balance': [{ bob: other, eve: prepaid }],
  'gets another secret, and its own is declared again later': [
    { bob: third },
    { bob: third, robert: prepaid },
  ],
  'gives its secret to a name that was removed': [{ bob: prepaid }, { eve: prepaid }],
};

describe('a used-up prepaid key', () => {
  test.each(Object.entries(ways))('that %s can not be used until it is paid for', async (_way, configs) => {
    const running = await start({ eve: other });
    const { gateway, declare, ask, own, faults } = running;
    declare({ eve: other, bob: prepaid });
    expect(await ask(other)).toBe(200);
    const { id } = await own(prepaid);
    await gateway.keys.credit(id, { amount: '0.000001', reference: 'r' });
    await useUp(running, prepaid);
    for (const config of configs) {
      declare(config);
      expect(await ask(prepaid)).toBe(Object.values(config).includes(prepaid) ? 402 : 401);
    }
    const moved = await own(prepaid);
    await gateway.keys.credit(moved.id, { amount: '1.00', reference: 'r2' });
    expect(await ask(prepaid)).toBe(200);
    expect(await faults()).toEqual([]);
  });

  test('that was issued, declared and renamed has its account, and the log names it', async () => {
    const running = await start({});
    const { gateway, declare, ask, own, lines } = running;
    const { id, key: secret } = await gateway.keys.create({ name: 'issued', balance: '0.000001' });
    await useUp(running, secret);
    for (const config of [{ bob: secret }, { robert: secret }]) {
      declare(config);
      expect(await ask(secret)).toBe(402);
      expect(await own(secret)).toMatchObject({ id });
    }
    const logged = lines.map((line) => JSON.parse(line) as { msg: string; keys?: string });
    expect(logged).toContainEqual(
      expect.objectContaining({ msg: expect.stringContaining('are declared now'), names: ['bob'] }),
    );
    expect(logged).toContainEqual(
      expect.objectContaining({ msg: 'declared keys renamed, with their accounts', names: ['robert'] }),
    );
    expect(await running.faults()).toEqual([]);
  });

  test('that was issued is not free under a name that had a key before, which the log says', async () => {
    const running = await start({ bob: other });
    const { gateway, declare, ask, own, lines } = running;
    const { key: secret } = await gateway.keys.create({ name: 'issued', balance: '0.000001' });
    await useUp(running, secret);
    declare({});
    declare({ bob: secret });
    expect(await ask(secret)).toBe(402);
    expect(await own(secret)).toMatchObject({ balance: '0.00' });
    expect(lines.join('')).toMatch(/"names":\["bob"\],"msg":"declared keys have a balance of 0/);
    expect(await running.faults()).toEqual([]);
  });
});

test('an issued key that was revoked is refused when it is declared, and the log says so', async () => {
  const { gateway, declare, ask, lines } = await start({});
  const { id, key: secret } = await gateway.keys.create({ name: 'leaked' });
  await gateway.keys.revoke(id);
  declare({ bob: secret, eve: other });
  expect([await ask(other), await ask(secret)]).toEqual([200, 401]);
  expect(lines.join('')).toMatch(/"level":50.*"names":\["bob"\].*"msg":"declared keys refused"/);
});

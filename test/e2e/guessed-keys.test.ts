import { connect } from 'node:net';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { mintKey } from '../../src/domain/keys/api-key.ts';
import type * as storage from '../../src/storage/store.ts';
import { askAdmin } from '../support/admin-client.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';

/** The key look-ups in the databases of this file's gateways. */
const lookUps = { made: 0, running: 0, mostAtOnce: 0 };

vi.mock(import('../../src/storage/store.ts'), async (importOriginal) => {
  const original = await importOriginal();
  const createStore: typeof storage.createStore = (...options) => {
    const store = original.createStore(...options);
    return {
      ...store,
      async findKeyByHash(hash) {
        lookUps.made++;
        lookUps.mostAtOnce = Math.max(lookUps.mostAtOnce, ++lookUps.running);
        return store.findKeyByHash(hash).finally(() => lookUps.running--);
      },
    };
  };
  return { ...original, createStore };
});

const connections = 40;
const batchesPerConnection = 8;
/** How many requests a connection may pipeline before reading from it stops. */
const requestsPerBatch = 8;
const guesses = connections * batchesPerConnection * requestsPerBatch;
/** The limit of simultaneous look-ups of unknown keys, and one for the paying key. */
const maxAtOnce = 64 + 1;

let gateway: TestGateway;
beforeEach(async () => {
  gateway = await startGateway({
    limits: { requestsPerMinute: 1_000_000, concurrency: 100 },
    server: { importedKeys: true },
  });
  Object.assign(lookUps, { made: 0, mostAtOnce: 0 });
});
afterEach(() => gateway.close());

/** Keys of other gateways, by their form. */
const foreignKey = (connection: number, number: number): string =>
  `sk-${`${connection}-${number}`.padEnd(22, 'x')}`;

const wrongKey = (connection: number, number: number): string =>
  mintKey(Buffer.alloc(44, `${connection}-${number} `)).secret;

/** Sends requests with these keys over one connection, in batches; resolves with the statuses of the answers. */
function ask(keys: readonly string[]): Promise<readonly string[]> {
  const { hostname, port } = new URL(gateway.url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname);
    let text = '';
    let sent = 0;
    const statuses = (): string[] => [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, code = '']) => code);
    const sendBatch = (): void => {
      const batch = keys.slice(sent, sent + requestsPerBatch);
      sent += batch.length;
      const heads = batch.map(
        (key) => `GET /v1/key HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`,
      );
      socket.write(heads.join(''));
    };
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      text += chunk;
      if (statuses().length < sent) return;
      if (sent < keys.length) sendBatch();
      else socket.destroy();
    });
    socket.on('error', reject);
    socket.on('close', () => resolve(statuses()));
    sendBatch();
  });
}

const flood = (keyOf: typeof wrongKey): Promise<readonly string[]> =>
  Promise.all(
    Array.from({ length: connections }, (_, connection) =>
      ask(
        Array.from({ length: batchesPerConnection * requestsPerBatch }, (__, number) =>
          keyOf(connection, number),
        ),
      ),
    ),
  ).then((statuses) => statuses.flat());

describe('thousands of pipelined wrong keys', () => {
  test.for([
    ['of our own form', wrongKey],
    ['of other forms, where imported keys are taken,', foreignKey],
  ] as const)(
    '%s do not keep a paying client from its answers, and reach the database only a few at a time',
    async ([, keyOf]) => {
      const question = { model: 'small', messages: [{ role: 'user', content: 'x' }] };
      const { secret, key } = await gateway.gateway.createKey('payer', { balanceNanos: 1_000_000_000 });
      const pay = async (): Promise<number> => {
        const headers = { authorization: `Bearer ${secret}` };
        const answer = await gateway.post('/v1/chat/completions', question, { headers });
        await answer.text();
        return answer.status;
      };
      expect(await pay()).toBe(200);

      const state = { flooding: true };
      const flooded = flood(keyOf).finally(() => (state.flooding = false));
      const paid: number[] = [];
      while (state.flooding) {
        paid.push(await pay());
        // Every change of a key empties the cache, so that the next request's look-up competes with the guesses.
        await askAdmin(gateway, 'PATCH', `/keys/${key.id}`, { name: `payer ${paid.length}` });
      }
      const statuses = await flooded;
      expect(new Set(paid)).toEqual(new Set([200]));
      expect(statuses).toHaveLength(guesses);
      expect(new Set(statuses)).toEqual(new Set(['401', '503']));
      expect(lookUps.mostAtOnce).toBeLessThanOrEqual(maxAtOnce);
      const shed = statuses.filter((status) => status === '503').length;
      expect(await (await fetch(`${gateway.adminUrl}/metrics`)).text()).toContain(
        `textgate_limited_total{cause="lookups"} ${shed}\n`,
      );
    },
  );

  test('with wrong checksums are refused without a single look-up', async () => {
    const statuses = await flood((...numbers) => wrongKey(...numbers).replace(/.{6}$/, '000000'));
    expect(statuses).toHaveLength(guesses);
    expect(new Set(statuses)).toEqual(new Set(['401']));
    expect(lookUps.made).toBe(0);
  });

  test('of other forms are refused without a single look-up where imported keys are not taken', async () => {
    await gateway.close();
    gateway = await startGateway({ limits: { requestsPerMinute: 1_000_000 } });
    lookUps.made = 0;
    const statuses = await flood(foreignKey);
    expect(new Set(statuses)).toEqual(new Set(['401']));
    expect(lookUps.made).toBe(0);
  });
});

import { randomBytes, randomUUID } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { declareKeys } from '../../src/operations/declare-keys.ts';
import { createKeyManagement } from '../../src/operations/manage-keys.ts';
import type { KeyManagement } from '../../src/operations/manage-keys.ts';
import { hashKey } from '../../src/shared/digest.ts';
import { createStore } from '../../src/storage/store.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { openTestEngine } from '../support/test-engine.ts';

test.each<[string, (keys: KeyManagement, id: string) => Promise<unknown>]>([
  ['changed', (keys, id) => keys.change(id, { name: 'mine', concurrency: 3 })],
  ['revoked', (keys, id) => keys.revoke(id)],
  ['rotated', (keys, id) => keys.rotate(id, 1_000)],
])(
  'a key that is declared between the look-up and the write is not %s, and that is refused',
  async (_how, alter) => {
    const engine = openTestEngine(':memory:');
    await engine.ready;
    onTestFinished(() => engine.close());
    const now = (): number => 1_800_000_000_000;
    const store = createStore(engine, { nextId: () => randomUUID(), now, report: () => {} });
    let secret: string | null = null;
    const keys = createKeyManagement({
      clock: createFakeClock(),
      randomBytes,
      hash: hashKey,
      forgetKeys: () => {},
      store: {
        ...store,
        async findKeyById(id) {
          const found = await store.findKeyById(id);
          if (secret !== null) {
            const bob = {
              name: 'bob',
              hash: hashKey(secret),
              limits: {},
              models: null,
              allowFrom: null,
              lowBalanceNanos: null,
              tags: [],
              expiresAt: null,
              budget: null,
              group: null,
              weight: 1,
              joinRetriesMs: null,
            };
            await declareKeys([{ ...bob, compatibility: {} }], { store, randomBytes, hash: hashKey, now });
          }
          return found;
        },
      },
    });
    const issued = await keys.issue('issued');
    secret = issued.secret;
    expect(await alter(keys, issued.key.id)).toMatchObject({ code: 'key_is_declared' });
    expect(await store.findKeyByHash(hashKey(secret))).toMatchObject({
      id: issued.key.id,
      name: 'bob',
      limits: {},
      revokedAtMs: null,
    });
  },
);

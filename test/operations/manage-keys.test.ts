import { randomBytes, randomUUID } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import type { Actor } from '../../src/domain/audit/audit-line.ts';
import { declareKeys } from '../../src/operations/declare-keys.ts';
import { createKeyManagement } from '../../src/operations/manage-keys.ts';
import type { KeyManagement } from '../../src/operations/manage-keys.ts';
import { hashKey } from '../../src/shared/digest.ts';
import type { Engine } from '../../src/storage/engine.ts';
import { createStore } from '../../src/storage/store.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { openTestEngine } from '../support/test-engine.ts';

const ada: Actor = { way: 'admin_api', name: 'ada', address: null };

test.each<[string, (keys: KeyManagement, id: string) => Promise<unknown>]>([
  ['changed', (keys, id) => keys.change(ada, id, { name: 'mine', concurrency: 3 })],
  ['revoked', (keys, id) => keys.revoke(ada, id)],
  ['rotated', (keys, id) => keys.rotate(ada, id, 1_000)],
])(
  'a key that is declared between the look-up and the write is not %s, and that is refused',
  async (_how, alter) => {
    const engine = openTestEngine(':memory:');
    await engine.ready;
    onTestFinished(() => engine.close());
    const now = (): number => 1_800_000_000_000;
    const options = { nextId: () => randomUUID(), now, report: () => {} };
    const others = createStore(engine, options);
    let secret: string | null = null;
    const declareBob = async (hash: string): Promise<void> => {
      const bob = {
        name: 'bob',
        hash,
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
      await declareKeys([{ ...bob, compatibility: {} }], { store: others, randomBytes, hash: hashKey, now });
    };
    const run: Engine['run'] = async (unit) => {
      if (secret !== null) await declareBob(hashKey(secret));
      return engine.run(unit);
    };
    const store = createStore({ ...engine, run }, options);
    const keys = createKeyManagement({
      clock: createFakeClock(),
      randomBytes,
      hash: hashKey,
      forgetKeys: () => {},
      store,
    });
    const issued = await keys.issue(ada, 'issued');
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

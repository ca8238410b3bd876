import { describe, expect, test } from 'vitest';
import { called, openWithLimiters, pass } from '../support/limiters-behind-gateway.ts';
import type { LimitersScene } from '../support/limiters-behind-gateway.ts';

/** How a key changes while its request waits, and the refusal that follows. */
type Change = readonly [
  what: string,
  change: (scene: LimitersScene, keyId: string) => unknown,
  status: number,
  code: string,
];

const groups = { research: { concurrency: 5 }, others: { concurrency: 5 } };

describe.each(['/v1/chat/completions', '/tokenize'])('a request for %s that waits for a permit', (path) => {
  /** Its key is in the group `research`; a request of another key in the group `others` has the only permit. */
  async function wait() {
    const scene = await openWithLimiters({ maxInFlight: 1 });
    scene.regroup(groups);
    const { gateway, ask, first, waiting } = scene;
    const other = await gateway.keys.create({ name: 'other', group: 'others' });
    const running = ask('one', { key: other.key });
    await called(first, 1);
    const { id, key } = await gateway.keys.create({ name: 'changed', group: 'research' });
    const asked = ask('two', { key, path });
    await waiting(1);
    await pass(scene.clock, 500);
    return { scene, id, running, asked };
  }

  test.each<Change>([
    ['is revoked', ({ admin }, id) => admin(`/keys/${id}`, 'DELETE'), 401, 'invalid_api_key'],
    [
      'may not use the model any more',
      ({ admin }, id) =>
        admin(`/keys/${id}`, 'PATCH', { models: [path === '/tokenize' ? 'small' : '/tokenize'] }),
      403,
      'model_not_allowed',
    ],
    [
      'may not be used from its address any more',
      ({ admin }, id) => admin(`/keys/${id}`, 'PATCH', { allowFrom: ['192.0.2.1'] }),
      403,
      'address_not_allowed',
    ],
    [
      'is in a group that is not configured any more',
      ({ regroup }) => regroup({ others: groups.others }),
      403,
      'group_not_configured',
    ],
  ])(
    'is refused when its key %s, and gives the permit to the next one',
    async (_what, change, status, code) => {
      const { scene, id, running, asked } = await wait();
      const { ask, first, waiting, admin } = scene;
      const next = ask('three');
      await waiting(2);
      await change(scene, id);
      first.calls[0]?.say();
      await asked.ended;
      expect(asked.status).toBe(status);
      expect(JSON.parse(asked.text)).toMatchObject({ error: { code } });
      await called(first, 2);
      expect(first.calls[1]?.asked).toBe('three');
      first.calls[1]?.say();
      await Promise.all([running.ended, next.ended]);
      expect(next.status).toBe(200);
      expect(first.calls).toHaveLength(2);
      const { data } = (await admin('/records')) as { data: object[] };
      expect(data).toHaveLength(2);
      expect(await admin(`/keys/${id}`)).toMatchObject({ in_flight: 0 });
    },
  );
});

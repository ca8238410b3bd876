import { expect, onTestFinished, test } from 'vitest';
import { openPeerListener } from '../../src/http/listen/peer-listener.ts';
import { createPeerClient } from '../../src/transport/peers.ts';
import { createFakeClock } from '../support/fake-clock.ts';

/** More text than the system keeps for a connection whose other side does not read. */
const deltas = Array.from({ length: 1_000 }, () => 'é漢'.repeat(4_096));

const settled = { result: { kind: 'finished', reason: 'stop' }, chargeNanos: 0, endedAtSeconds: 0 };

test('a text with characters of several bytes goes on to a process that has been slow to read', async () => {
  const clock = createFakeClock();
  const token = 'a-token-of-the-nodes';
  let waits = 0;
  const waiting = Promise.withResolvers<void>();
  const listener = await openPeerListener({
    host: '127.0.0.1',
    port: 0,
    token,
    certificates: null,
    clock,
    onFault: (message) => expect.unreachable(message),
    noteDelivered: () => {},
    respond: async () => null,
    async join(_wanted, peer) {
      peer.send({ kind: 'joined', requestId: 'req_1', asked: {} as never, isReplay: false });
      for (const delta of deltas) {
        if (peer.send({ kind: 'text', deltas: [delta] })) continue;
        waits++;
        waiting.resolve();
        await peer.drained();
      }
      peer.send({ kind: 'ended', settled: settled as never });
      await peer.end();
    },
  });
  const client = createPeerClient({
    addresses: async () => [listener.address],
    token,
    certificates: () => ({}),
    clock,
  });
  onTestFinished(async () => {
    listener.close();
    await client.close();
  });
  const wanted = { kind: 'request', keyId: 'key', requestId: 'req_1' } as const;
  const found = await client.join(wanted, null, new AbortController().signal);
  if (typeof found === 'string') throw new Error(found);
  await waiting.promise;
  let read = 0;
  for (let event = await found.events.next(); event?.kind === 'text'; event = await found.events.next())
    read += event.deltas.length;
  expect(read).toBe(deltas.length);
  expect(waits).toBeGreaterThan(0);
});

import { expect, onTestFinished, test } from 'vitest';
import { askAdmin } from '../support/admin-client.ts';
import { sayTexts, startUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';

test('latencies of streams and whole answers are read by upstream and model, in slots of a time', async () => {
  const upstream = await startUpstream();
  upstream.play(sayTexts(['x']));
  const gateway = await startGateway({ upstreamUrl: upstream.url });
  onTestFinished(() => gateway.close());
  onTestFinished(() => upstream.close());
  for (const stream of [true, false]) {
    const body = { model: 'small', stream, messages: [{ role: 'user', content: 'x' }] };
    await (await gateway.post('/v1/chat/completions', body)).text();
  }
  await gateway.recorded();
  const read = async (query: string) => askAdmin(gateway, 'GET', `/latency?${query}`);
  const { body } = await read('slots=3');
  expect(body).toMatchObject({
    slots: [{ is_complete: true }, { is_complete: true }, { is_complete: true }],
    data: [
      {
        upstream: 'local',
        model: 'small',
        requests: 2,
        first_text_ms: { requests: 1, p50: expect.any(Number) },
        duration_ms: { requests: 2, p99: expect.any(Number) },
        slots: [{ requests: 0, duration_ms: { p50: null } }, { requests: 0 }, { requests: 2 }],
      },
    ],
    other: { pairs: 0, requests: 0 },
  });
  expect((await read('upstream=%3Cb%3E%E2%80%AE')).body.data).toEqual([]);
  // A day of 23 hours.
  const day = (await read('from=2030-03-31T00:00:00%2B01:00&to=2030-04-01T00:00:00%2B02:00&slots=23')).body;
  expect(day.slots.slice(0, 2).map(({ from }: { from: string }) => from)).toEqual([
    '2030-03-30T23:00:00.000Z',
    '2030-03-31T00:00:00.000Z',
  ]);
  for (const [query, message] of [
    ['from=2030-01-02&to=2030-01-01', "Invalid 'to': expected a time after 'from'."],
    ['slots=101', "Invalid 'slots': expected a whole number from 1 to 100."],
    ['from=2999-01-01', "Invalid 'to'"],
  ] as const) {
    const refused = await read(query);
    expect({ query, status: refused.status }).toEqual({ query, status: 400 });
    expect(refused.body.error.message).toContain(message);
  }
});

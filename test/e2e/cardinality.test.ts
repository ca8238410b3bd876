import { expect, test } from 'vitest';
import { sayTexts, startUpstream } from '../support/scripted-upstream.ts';
import { propertyRun } from '../support/property-run.ts';
import { randomNumbers } from '../support/random-numbers.ts';
import { startGateway } from '../support/test-gateway.ts';

/** How many requests are sent: each kind is sent some forty times, and a series each would be seen after one. */
const requests = propertyRun(280).numRuns;
const atATime = 20;

test('made-up models, paths, keys and parameters add no series to the metrics', async () => {
  const { random } = randomNumbers();
  const upstream = await startUpstream();
  upstream.play(sayTexts(['x']));
  const gateway = await startGateway({
    upstreamUrl: upstream.url,
    limits: { requestsPerMinute: 1_000_000, concurrency: 100 },
  });
  const made = (): string => random().toString(36).slice(2);
  const ask = { model: 'small', messages: [{ role: 'user', content: 'x' }] };
  const kinds = [
    () => gateway.post('/v1/chat/completions', ask),
    () => gateway.post('/v1/chat/completions', { ...ask, model: made() }),
    () => gateway.post('/v1/responses', { model: made(), input: 'x' }),
    () => gateway.post('/v1/chat/completions', { ...ask, [made()]: 1 }),
    () => gateway.post(`/v1/${made()}`, {}),
    () => gateway.post(`/${made()}`, {}),
    () => gateway.post('/v1/chat/completions', ask, { headers: { authorization: `Bearer sk-tg-${made()}` } }),
  ];
  const send = async (kind: number): Promise<void> => void (await (await kinds[kind]?.())?.text());
  const series = async (): Promise<readonly string[]> => {
    const text = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
    const lines = text.split('\n').filter((line) => /^(textgate|gen_ai)_/.test(line));
    // It comes ten seconds after the start, whatever is asked.
    const names = lines.map((line) => line.slice(0, line.lastIndexOf(' ')));
    return names.filter((name) => name !== 'textgate_oldest_record_age_seconds').toSorted();
  };

  for (const kind of kinds.keys()) await send(kind);
  const before = await series();
  expect(before.length).toBeGreaterThan(50);
  for (let sent = 0; sent < requests; sent += atATime)
    await Promise.all(Array.from({ length: atATime }, () => send(Math.floor(random() * kinds.length))));
  expect(await series()).toEqual(before);
  await gateway.close();
  await upstream.close();
});

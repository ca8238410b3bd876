import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { expect, onTestFinished, test } from 'vitest';
import { createGateway } from '../../src/index.ts';
import { eventually } from '../support/eventually.ts';
import { sendJson, startUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import { plant } from '../support/canaries.ts';

const content = Array.from({ length: 40 }, (_, index) => `sentence number ${index} of a text.`).join(' ');
plant(content);
const tokens = countTokens(content);

/** A gateway whose upstream reports what `usage` says. */
async function open(sample: number | undefined) {
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  const gateway = await startGateway({
    upstreamUrl: upstream.url,
    limits: { requestsPerMinute: 100_000 },
    ...(sample === undefined ? {} : { metering: { sample } }),
  });
  onTestFinished(() => gateway.close());
  let factor = 1;
  upstream.play((response) => {
    const [input, output] = [Math.round((tokens + 4) * factor), Math.round(tokens * factor)];
    const message = { role: 'assistant', content };
    const usage = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
    const choices = [{ index: 0, message, finish_reason: 'stop' }];
    sendJson(response, 200, JSON.stringify({ id: 'x', object: 'chat.completion', choices, usage }));
  });
  const readMetric = async (name: string, labels: string): Promise<number | null> => {
    const text = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
    const line = text.split('\n').find((each) => each.startsWith(`${name}{${labels}}`));
    return line === undefined ? null : Number(line.split(' ').at(-1));
  };
  return {
    readMetric,
    setFactor: (next: number) => void (factor = next),
    ask: async (times: number): Promise<void> => {
      const compared = (await readMetric('textgate_usage_samples_total', 'result="compared"')) ?? 0;
      for (let asked = 0; asked < times; asked++) {
        const body = { model: 'small', messages: [{ role: 'user', content }] };
        await (await gateway.post('/v1/chat/completions', body)).text();
        // Samples beyond 16 that wait would be dropped.
        if (sample === 1 && asked % 10 === 9)
          await eventually('the samples are counted', async () => {
            const now = await readMetric('textgate_usage_samples_total', 'result="compared"');
            return now === compared + asked + 1;
          });
      }
    },
  };
}

const output = 'upstream="local",model="tiny",kind="output"';

test('an upstream that begins to report 10 % more shows up in the metrics', { timeout: 60_000 }, async () => {
  const { ask, readMetric, setFactor } = await open(1);
  setFactor(1.2);
  await ask(200);
  expect(await readMetric('textgate_usage_reported_ratio', output)).toBeCloseTo(1.2, 2);
  expect(await readMetric('textgate_usage_drift_ratio', output)).toBeCloseTo(1, 6);
  expect(await readMetric('textgate_usage_drift_uncertainty', output)).toBeCloseTo(0, 6);
  setFactor(1.32);
  await ask(60);
  for (const kind of ['input', 'output'])
    expect(
      await readMetric('textgate_usage_drift_ratio', `upstream="local",model="tiny",kind="${kind}"`),
    ).toBeCloseTo(1.1, 2);
});

test('without the setting no answer is sampled, and there are no metrics of it', async () => {
  const { ask, readMetric } = await open(undefined);
  await ask(5);
  for (const result of ['compared', 'skipped', 'dropped', 'failed'])
    expect(await readMetric('textgate_usage_samples_total', `result="${result}"`)).toBeNull();
  expect(await readMetric('textgate_usage_reported_ratio', output)).toBeNull();
});

test('a reload turns it on, and off again: what was counted stays', async () => {
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  upstream.play((response) => {
    const usage = { prompt_tokens: tokens, completion_tokens: tokens, total_tokens: 2 * tokens };
    const choices = [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }];
    sendJson(response, 200, JSON.stringify({ id: 'x', object: 'chat.completion', choices, usage }));
  });
  const config = (sample: number) => ({
    server: { port: 0 },
    admin: { port: 0 },
    storage: { url: 'sqlite::memory:' },
    upstreams: { local: { url: upstream.url } },
    models: { small: { routes: [{ upstream: 'local', model: 'tiny' }], free: true as const } },
    metering: { sample },
  });
  const gateway = createGateway(config(0), { logLevel: 'silent' });
  onTestFinished(() => gateway.close());
  const { url, adminUrl } = await gateway.listen();
  const { key } = await gateway.keys.create({ name: 'one', requestsPerMinute: 1_000 });
  const compared = async (): Promise<string | null> => {
    const text = await (await fetch(`${adminUrl}/metrics`)).text();
    return /^textgate_usage_samples_total\{result="compared"\} (\d+)$/m.exec(text)?.[1] ?? null;
  };
  const ask = async (): Promise<void> => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const body = JSON.stringify({ model: 'small', messages: [{ role: 'user', content }] });
    const response = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body });
    expect(response.status).toBe(200);
    await response.text();
  };
  await ask();
  expect(await compared()).toBeNull();
  gateway.reload(config(1));
  await eventually('the second meter is loaded', async () => (await compared()) === '0');
  await ask();
  await eventually('the sample is counted', async () => (await compared()) === '1');
  gateway.reload(config(0));
  await ask();
  gateway.reload(config(1));
  await ask();
  await eventually('the second sample is counted', async () => (await compared()) === '2');
});

import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { expect, onTestFinished, test } from 'vitest';
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

test('without the setting no answer is sampled', async () => {
  const { ask, readMetric } = await open(undefined);
  await ask(5);
  for (const result of ['compared', 'skipped', 'dropped', 'failed'])
    expect(await readMetric('textgate_usage_samples_total', `result="${result}"`)).toBe(0);
  expect(await readMetric('textgate_usage_reported_ratio', output)).toBeNull();
});

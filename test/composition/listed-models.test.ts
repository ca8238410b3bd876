import { expect, test } from 'vitest';
import { checkConfig } from '../../src/config/load.ts';
import { systemClock } from '../../src/composition/clock.ts';
import { keepModels } from '../../src/composition/upstreams/kept-models.ts';
import { composeModels } from '../../src/composition/upstreams/models.ts';
import { followUpstreamFiles, readUpstreamFiles } from '../../src/composition/upstreams/upstream-files.ts';

/** The only model of a config with some routes and a price, as it is offered. */
function offeredModel(routes: readonly object[], price: unknown) {
  const config = checkConfig(
    {
      upstreams: {
        openai: { url: 'https://api.openai.com/v1' },
        deepseek: { url: 'https://api.deepseek.com' },
      },
      models: { small: { routes, price } },
    },
    'the test',
  );
  const files = followUpstreamFiles(readUpstreamFiles(config), systemClock, { fault() {}, notice() {} });
  const ports = { upstreams: { call: () => Promise.reject(new Error('no call')) } } as never;
  const details = { files, findProxy: () => null, nameSettings: () => ({}) as never };
  const [model] = composeModels(config, ports, details, keepModels(config, null)).offered();
  files.stop();
  return model;
}

const mini = { upstream: 'openai', model: 'gpt-4o-mini' };

test('a model with the price of the list has the context that the list has for what its routes lead to', () => {
  expect(offeredModel([mini], 'list')).toMatchObject({
    price: { input: 150_000_000 },
    contextTokens: 128_000,
  });
  expect(offeredModel([mini, mini], 'list')).toMatchObject({ contextTokens: 128_000 });
});

test('a price by name says nothing of the context of the model that is served', () => {
  const model = offeredModel([{ upstream: 'deepseek', model: 'own' }], {
    list: 'openai/gpt-4o-mini',
    times: '2',
  });
  expect(model?.price.input).toBe(300_000_000);
  expect(model?.contextTokens).toBeUndefined();
});

test('a price that changes with the time of the day is offered with its changes', () => {
  const model = offeredModel([{ upstream: 'deepseek', model: 'deepseek-chat' }], 'list');
  expect(model?.priceChanges).toMatchObject([
    {
      time: { kind: 'daily', dailyFromMs: 1_800_000, dailyUntilMs: 59_400_000 },
      price: { input: 270_000_000 },
    },
  ]);
});

import { expect, test } from 'vitest';
import { free } from '../../src/domain/money/pricing.ts';
import { createModelList } from '../../src/models/model-list.ts';
import { localRoute, usualSettings } from '../support/model-source.ts';

const offered = [
  {
    ...usualSettings,
    id: 'small',
    createdAtSeconds: 1,
    price: free,
    holdTokens: 1,
    routes: [localRoute],
  },
  { ...usualSettings, id: 'org/large', createdAtSeconds: 2, price: free, holdTokens: 1, routes: [] },
];
const models = createModelList(offered);

test('a configured model is found by its exact name', async () => {
  expect(await models.find('org/large')).toBe(offered[1]);
});

test.each(['', 'Small', 'small ', 'tiny', 'constructor', '__proto__'])(
  'no configured model is found by the name %j',
  async (id) => {
    expect(await models.find(id)).toBeNull();
  },
);

test('configured models are listed in the order of the config', async () => {
  expect(await models.list()).toEqual(offered);
});

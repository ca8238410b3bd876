import type { Mutation } from './mutation.ts';

const listed = ['test/prices/list-price.test.ts'];

/** Faults of prices of the public list. */
export const priceFaults: readonly Mutation[] = [
  {
    name: 'a price that changes with the time, and is always the first one',
    file: 'src/pipeline/route.ts',
    find: 'const model = pricedAt(found, ports.clock.now());',
    replace: 'const model = pricedAt(found, 0);',
    tests: ['test/e2e/prices.test.ts'],
  },
  {
    name: 'of the prices that hold at a time the first one',
    file: 'src/domain/money/price-changes.ts',
    find: 'priceChanges.findLast(',
    replace: 'priceChanges.find(',
    tests: ['test/domain/price-changes.test.ts'],
  },
  {
    name: 'a price of the list without its factor',
    file: 'src/prices/list-price.ts',
    find: 'return Number((exact * times + divisor - 1n) / divisor);',
    replace: 'return Number((exact * (times > 0n ? by : 0n) + divisor - 1n) / divisor);',
    tests: ['test/e2e/prices.test.ts'],
  },
  {
    name: 'cached input without a price of its own that is free',
    file: 'src/prices/list-price.ts',
    find: "cachedInput: nanos('cache_read_mtok') ?? input,",
    replace: "cachedInput: nanos('cache_read_mtok') ?? 0,",
    tests: listed,
  },
  {
    name: 'a later model that is charged as the one whose name begins its own',
    file: 'src/prices/price-list.ts',
    find: 'return found !== null && isNameOf(name.toLowerCase(), found) ? found : null;',
    replace: 'return found !== null && (isNameOf(name.toLowerCase(), found) || name !== "") ? found : null;',
    tests: listed,
  },
  {
    name: 'what the list bills beside text that is left out of a charge',
    file: 'src/prices/list-price.ts',
    find: 'if (kind !== undefined) return `it is billed by',
    replace: 'if (kind === "") return `it is billed by',
    tests: listed,
  },
];

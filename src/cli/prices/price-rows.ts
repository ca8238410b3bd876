import type { PriceTime } from '../../domain/money/price-changes.ts';
import type { ModelPrice, Price } from '../../domain/money/pricing.ts';
import { presentModelPrice } from '../../http/present/price.ts';
import type { ListedTerms } from '../../prices/list-price.ts';
import { formatUsd } from '../../shared/money.ts';

/** The columns of a row: USD per million tokens of each kind, USD per request, and when they hold. */
export const priceColumns = ['INPUT', 'CACHED', 'WRITTEN', 'OUTPUT', 'REQUEST', 'WHEN'];

/** The rows of what the list has of a model: one for each of its prices. */
export function rowsOf({ price, priceChanges = [] }: ListedTerms): readonly (readonly string[])[] {
  return [
    ...linesOf(price, ''),
    ...priceChanges.flatMap((change) => linesOf(change.price, describeTime(change.time))),
  ];
}

/** Rows with labels before the first of them. */
export function labelled(
  labels: readonly string[],
  rows: readonly (readonly string[])[],
): readonly (readonly string[])[] {
  return rows.map((row, index) => labels.map((label) => (index === 0 ? label : '')).concat(row));
}

/** The amounts of a price that holds at some time, and those above a number of input tokens. */
function linesOf({ above, ...line }: ModelPrice, when: string): readonly (readonly string[])[] {
  const first = [...amountsOf(line), when];
  if (above === null) return [first];
  return [
    first,
    [...amountsOf(above), [when, `above ${above.inputTokens} tokens`].filter(Boolean).join(', ')],
  ];
}

function amountsOf({ input, cachedInput, cacheWrite, output, request }: Price): readonly string[] {
  const perTokens = [input, cachedInput, cacheWrite, output].map((nanos) => formatUsd(nanos));
  return [...perTokens, request === 0 ? '' : formatUsd(request)];
}

function describeTime(time: PriceTime): string {
  if (time.kind === 'from') return `from ${new Date(time.fromMs).toISOString().slice(0, 10)}`;
  const [from, until] = [time.dailyFromMs, time.dailyUntilMs].map((ms) =>
    new Date(ms).toISOString().slice(11, 16),
  );
  return `${from} to ${until} UTC`;
}

/** What the list has of a model, as JSON. */
export function presentTerms({ price, priceChanges = [], contextTokens }: ListedTerms) {
  return {
    context_tokens: contextTokens ?? null,
    price: presentModelPrice(price),
    changes: priceChanges.map((change) => ({
      ...(change.time.kind === 'from'
        ? { from: new Date(change.time.fromMs).toISOString() }
        : { daily_from_ms: change.time.dailyFromMs, daily_until_ms: change.time.dailyUntilMs }),
      price: presentModelPrice(change.price),
    })),
  };
}

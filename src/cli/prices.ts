import type { PriceTime } from '../domain/money/price-changes.ts';
import type { ModelPrice, Price } from '../domain/money/pricing.ts';
import { presentModelPrice } from '../http/present/price.ts';
import { listPrice, once } from '../prices/list-price.ts';
import type { ListedTerms } from '../prices/list-price.ts';
import { describeAge, listVersion, openPriceList } from '../prices/open-price-list.ts';
import { formatUsd } from '../shared/money.ts';
import { writeTable } from './output.ts';
import type { Json } from './output.ts';

/** A price of the list that a config may name. */
interface Listed extends ListedTerms {
  readonly name: string;
}

/** The prices of the public list, of the models whose names have a text in them, where `*` stands for any text. */
export async function showPrices(pattern: string | undefined, { json }: Json): Promise<string> {
  const { found, others } = await findPrices(pattern ?? '');
  if (json) return JSON.stringify({ list: listOf(listVersion), data: found.map(toJson) }, null, 2);
  if (found.length === 0)
    throw new Error(
      others > 0
        ? `none of the ${others} models with '${pattern ?? ''}' in their names can be charged by the list: they are billed by more than text`
        : `the list of prices has no model with '${pattern ?? ''}' in its name`,
    );
  const rows = found.flatMap(rowsOf);
  const age = describeAge(Date.now());
  return [
    writeTable(head, rows, { right: head.slice(1, -1), width: Infinity }),
    '',
    `USD per million tokens, and per request. In a config: price: { list: ${found[0]?.name ?? ''} }`,
    ...(others > 0
      ? [
          `${others} others can't be charged by the list: they are billed by more than text, or have no price.`,
        ]
      : []),
    ...(age === null ? [] : [`Note: ${age}.`]),
  ].join('\n');
}

const head = ['MODEL', 'INPUT', 'CACHED', 'WRITTEN', 'OUTPUT', 'REQUEST', 'WHEN'];

async function findPrices(pattern: string): Promise<{ found: readonly Listed[]; others: number }> {
  const parts = pattern.toLowerCase().split('*');
  const found: Listed[] = [];
  let others = 0;
  for (const provider of await openPriceList().all())
    for (const model of provider.models) {
      const name = `${provider.id}/${model.id}`;
      if (!hasParts(name.toLowerCase(), parts)) continue;
      const price = listPrice(model, once);
      if (typeof price === 'string') others++;
      else found.push({ name, ...price });
    }
  return { found, others };
}

/** Whether a text has some parts in it, one behind the other. */
function hasParts(text: string, parts: readonly string[]): boolean {
  let from = 0;
  for (const part of parts) {
    const at = text.indexOf(part, from);
    if (at === -1) return false;
    from = at + part.length;
  }
  return true;
}

/** The rows of a model: one for each of its prices. */
function rowsOf({ name, price, priceChanges = [] }: Listed): readonly (readonly string[])[] {
  const rows = [
    ...linesOf(price, ''),
    ...priceChanges.flatMap((change) => linesOf(change.price, describeTime(change.time))),
  ];
  return rows.map((row, index) => [index === 0 ? name : ''].concat(row));
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

function listOf({ version, publishedMs }: typeof listVersion) {
  return { version, published_at: new Date(publishedMs).toISOString() };
}

function toJson({ name, price, priceChanges = [], contextTokens }: Listed) {
  return {
    name,
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

import { listPrice, once } from '../../prices/list-price.ts';
import type { ListedTerms } from '../../prices/list-price.ts';
import { describeAge, listVersion, openPriceList } from '../../prices/open-price-list.ts';
import { writeTable } from '../output.ts';
import type { Json } from '../output.ts';
import { labelled, presentTerms, priceColumns, rowsOf } from './price-rows.ts';

/** A price of the list that a config may name. */
interface Listed extends ListedTerms {
  readonly name: string;
}

/** The prices of the public list, of the models whose names have a text in them, where `*` stands for any text. */
export async function showPrices(pattern: string | undefined, { json }: Json): Promise<string> {
  const { found, others } = await findPrices(pattern ?? '');
  if (json)
    return JSON.stringify(
      {
        list: listOf(listVersion),
        data: found.map(({ name, ...terms }) => Object.assign({ name }, presentTerms(terms))),
      },
      null,
      2,
    );
  if (found.length === 0)
    throw new Error(
      others > 0
        ? `none of the ${others} models with '${pattern ?? ''}' in their names can be charged by the list: they are billed by more than text`
        : `the list of prices has no model with '${pattern ?? ''}' in its name`,
    );
  const rows = found.flatMap(({ name, ...terms }) => labelled([name], rowsOf(terms)));
  const age = describeAge(Date.now());
  return [
    writeTable(head, rows, { right: priceColumns.slice(0, -1), width: Infinity }),
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

const head = ['MODEL', ...priceColumns];

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

function listOf({ version, publishedMs }: typeof listVersion) {
  return { version, published_at: new Date(publishedMs).toISOString() };
}

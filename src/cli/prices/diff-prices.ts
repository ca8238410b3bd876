import { isDeepStrictEqual } from 'node:util';
import { findListedPrices } from '../../composition/upstreams/prices.ts';
import { describeReadFault, readText } from '../../config/read-file.ts';
import { loadConfigFile } from '../../config/load.ts';
import type { Config } from '../../config/schema/schema.ts';
import type { ListedTerms } from '../../prices/list-price.ts';
import { listVersion, openPriceList } from '../../prices/open-price-list.ts';
import { count } from '../../shared/count.ts';
import { formatUsd } from '../../shared/money.ts';
import { parseJson } from '../../shared/parse-json.ts';
import { describeError } from '../describe-error.ts';
import { writeTable } from '../output.ts';
import { labelled, presentTerms, priceColumns, rowsOf } from './price-rows.ts';
import { readKeyCharges } from './recharge.ts';
import type { KeyCharges, ListedPrices } from './recharge.ts';

/** How many keys the table has: those whose charges change most. */
const maxKeys = 20;

/** A model whose price would be another one; a text says why a list has none for it. */
interface ChangedModel {
  readonly model: string;
  readonly now: ListedTerms | string;
  readonly later: ListedTerms | string;
}

/** Compares the prices that a config takes from the list with those of a later one, and what keys were charged in a week. */
export async function diffPrices(file: string, configFile: string, json: boolean): Promise<string> {
  const config = loadConfigFile(configFile, process.env);
  const now = findListedPrices(config);
  if (now.size === 0) throw new Error(`${configFile} has no price of the list: a later list changes nothing`);
  const later = readLaterPrices(file, config);
  const changed = changesOf(now, later);
  const charges =
    changed.length === 0 ? [] : await readKeyCharges(later, new Set(changed.map(({ model }) => model)));
  if (json) return JSON.stringify(present(changed, charges), null, 2);
  return [
    `${changed.length} of ${count(now.size, 'model')} would have ${changed.length === 1 ? 'another price' : 'other prices'} than that of ${listVersion.version}.`,
    ...(changed.length === 0 ? [] : ['', writeChanges(changed)]),
    ...describeCharges(charges),
  ].join('\n');
}

/** The prices of a config by a later list, which is in force in this process from then on. */
function readLaterPrices(file: string, config: Config): ListedPrices {
  const list = readLaterList(file);
  try {
    openPriceList().replace(list);
    return findListedPrices(config);
  } catch (error) {
    throw new Error(`${file} can't be used as a list of prices: ${describeError(error)}`, { cause: error });
  }
}

/** The largest list of prices, in bytes. */
const maxListBytes = 67_108_864;

function readLaterList(file: string): unknown {
  let text: string;
  try {
    text = readText(file, maxListBytes);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new Error(`${file} can't be read: ${describeReadFault(code) ?? message}`, { cause: error });
  }
  const list = parseJson(text);
  if (!Array.isArray(list) || list.length === 0 || !list.every(isProvider))
    throw new Error(
      `${file} is no list of prices: expected the data.json of genai-prices, an array of providers with their models`,
    );
  return list;
}

function isProvider(value: unknown): boolean {
  const { id, models, api_pattern: pattern } = (value ?? {}) as Readonly<Record<string, unknown>>;
  return typeof id === 'string' && Array.isArray(models) && typeof pattern === 'string';
}

function changesOf(now: ListedPrices, later: ListedPrices): readonly ChangedModel[] {
  return [...now].flatMap(([model, terms]) => {
    const other = later.get(model) ?? 'the list does not have it';
    return isDeepStrictEqual(terms, other) ? [] : [{ model, now: terms, later: other }];
  });
}

function writeChanges(changed: readonly ChangedModel[]): string {
  const rows = changed.flatMap(({ model, now, later }) => [
    ...labelled([model, 'now'], rowsIn(now)),
    ...labelled(['', 'later'], rowsIn(later)),
  ]);
  const head = ['MODEL', 'LIST', ...priceColumns];
  return writeTable(head, rows, { right: priceColumns.slice(0, -1), width: Infinity });
}

/** The rows of a price, or one that says why there is none. */
function rowsIn(terms: ListedTerms | string): readonly (readonly string[])[] {
  return typeof terms === 'string' ? [['', '', '', '', '', `refused: ${terms}`]] : rowsOf(terms);
}

function describeCharges(charges: readonly KeyCharges[] | string): readonly string[] {
  if (typeof charges === 'string') return ['', `What keys would have paid is not known: ${charges}`];
  if (charges.length === 0) return [];
  const shown = charges.slice(0, maxKeys);
  const rows = shown.map(({ name, chargedNanos, laterNanos }) => [
    name,
    formatUsd(chargedNanos),
    formatUsd(laterNanos),
    writeChange(chargedNanos, laterNanos),
  ]);
  const head = ['KEY', 'CHARGED', 'WITH THE LATER LIST', 'CHANGE'];
  const more = charges.length - shown.length;
  return [
    '',
    'What keys were charged in the last 7 days, in USD, and would have been:',
    writeTable(head, rows, { right: head.slice(1), cut: ['KEY'] }),
    ...(more > 0 ? [`and ${count(more, 'key')} more, of which less changes`] : []),
  ];
}

/** A change in percent, such as `-1.3 %`. */
function writeChange(before: bigint, after: bigint): string {
  if (before === 0n) return '-';
  const percent = (Number(after - before) / Number(before)) * 100;
  return `${percent > 0 ? '+' : ''}${percent.toFixed(1)} %`;
}

function presentEither(terms: ListedTerms | string) {
  return typeof terms === 'string' ? { refused: terms } : presentTerms(terms);
}

function present(changed: readonly ChangedModel[], charges: readonly KeyCharges[] | string) {
  return {
    models: changed.map(({ model, now, later }) => ({
      model,
      now: presentEither(now),
      later: presentEither(later),
    })),
    ...(typeof charges === 'string' ? { keys_unknown: charges } : {}),
    keys:
      typeof charges === 'string'
        ? null
        : charges.map(({ id, name, chargedNanos, laterNanos }) => ({
            id,
            name,
            charged: formatUsd(chargedNanos),
            with_the_later_list: formatUsd(laterNanos),
          })),
  };
}

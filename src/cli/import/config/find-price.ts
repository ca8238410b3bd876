import { isDeepStrictEqual } from 'node:util';
import { findListPrice, findPriceAt, hasProvider, listNameAt, modelsAt } from '../../../prices/find-price.ts';
import type { ListedTerms } from '../../../prices/list-price.ts';
import { formatUsd, parseUsd, plainDecimal } from '../../../shared/money.ts';
import type { Settings } from './file-values.ts';
import type { ImportedLine, Target } from './find-target.ts';
import { textOf } from './read-litellm.ts';
import type { Deployment } from './read-litellm.ts';

/** What a model costs, as it stands in a config: a setting, its value, and what is said of it. */
export interface ImportedPrice {
  readonly setting: 'price' | 'free';
  readonly value: unknown;
  /** `unlisted`: the list knows the provider, and not the model; `unknown`: neither. */
  readonly origin: 'own' | 'list' | 'unlisted' | 'unknown';
  readonly terms: ListedTerms | null;
}

/** A deployment that is taken over, and where it is served. */
export interface Taken {
  readonly deployment: Deployment;
  readonly target: Target;
}

/** Own prices by their names in LiteLLM, and here. */
const ownNames = [
  ['input_cost_per_token', 'input'],
  ['cache_read_input_token_cost', 'cachedInput'],
  ['cache_creation_input_token_cost', 'cacheWrite'],
  ['output_cost_per_token', 'output'],
] as const;

/** What a deployment says of its price itself. */
interface OwnPrice {
  /** Exact; `null` where a part of it can't be read. */
  readonly price: ImportedPrice | null;
  /** Whether it has that of input or of output alone: the other one is 0, as it is there. */
  readonly isHalf: boolean;
  /** Whether prices above a number of tokens are left out. */
  readonly isCut: boolean;
}

/** The price that a deployment has itself; `null` for one without. */
export function ownPrice({ params, info }: Deployment): OwnPrice | null {
  const all = new Map([...info, ...params]);
  const base = pricesOf(all, '');
  const thresholds = thresholdsOf(all);
  const [first = 0] = thresholds;
  const above = pricesOf(all, `_above_${first / 1_000}k_tokens`);
  if (base.size === 0) return null;
  const isCut = thresholds.length > 1 || [...above.values()].includes(null);
  const isHalf = !base.has('input') || !base.has('output');
  const ends = { input: base.get('input') ?? '0', output: base.get('output') ?? '0' };
  const unread = [...base.values()].includes(null) || (!base.has('input') && !base.has('output'));
  if (unread) return { price: null, isHalf, isCut };
  // In the order of a config, and above a number of tokens what has no other price there costs what it costs below.
  const whole = { ...Object.fromEntries(base), ...ends };
  const other = Object.fromEntries([...above].filter(([, price]) => price !== null));
  const isFree = [...Object.values(whole), ...Object.values(other)].every((price) => price === '0');
  const value =
    Object.keys(other).length === 0 ? whole : { ...whole, above: { inputTokens: first, ...whole, ...other } };
  const price: ImportedPrice = isFree ? free('own') : { setting: 'price', value, origin: 'own', terms: null };
  return { price, isHalf, isCut };
}

/** The thresholds above which a deployment has other prices, in tokens of a prompt, ascending. */
function thresholdsOf(all: Settings): readonly number[] {
  const found = [...all.keys()].flatMap((name) => {
    const [, litellms, thousands] = /^(\w+?)_above_(\d{1,6})k_tokens$/.exec(name) ?? [];
    return ownNames.some(([own]) => own === litellms) ? [Number(thousands) * 1_000] : [];
  });
  return [...new Set(found)].toSorted((one, other) => one - other);
}

function free(origin: 'own' | 'unlisted' | 'unknown'): ImportedPrice {
  return { setting: 'free', value: true, origin, terms: null };
}

/** The prices per million tokens whose names in LiteLLM end in a certain way; `null` for one that can't be read. */
function pricesOf(all: Settings, ending: string): ReadonlyMap<string, string | null> {
  return new Map(
    ownNames.flatMap(([litellms, ours]) => {
      const text = textOf(all, litellms + ending);
      return text === null ? [] : [[ours, perMillion(text)] as const];
    }),
  );
}

/** The most digits behind the point of a price. */
const maxDecimals = 9;

/**
 * The price of a million tokens from the text of that of one, in decimal digits: `1.5e-7` is `0.15`. More digits than a price
 * can have are rounded up. `null` for what is no price.
 */
function perMillion(text: string): string | null {
  const [, digits, power = '0'] = /^\+?(\d+\.?\d*|\.\d+)(?:e([+-]?\d{1,2}))?$/i.exec(text) ?? [];
  if (digits === undefined) return null;
  const exact = plainDecimal(`${digits}e${Number(power) + 6}`);
  const [whole = '', decimals = ''] = exact.split('.');
  if (decimals.length <= maxDecimals) return parseUsd(exact) === null ? null : exact;
  const below = parseUsd(`${whole}.${decimals.slice(0, maxDecimals)}`);
  return below === null ? null : formatUsd(below + 1);
}

/**
 * The price of a model, by what its entries say of it themselves: the first one that is not free. Else it is that of the
 * public list: of the model that an entry names as its base, or the one that all its routes have, or that of the first route with
 * a price. Without one, what an entry says of input or output alone counts; or else it is free.
 */
export function priceOf(taken: readonly Taken[], behind: readonly Taken[]): ImportedPrice {
  const own = taken.map((one) => ({ one, price: ownPrice(one.deployment) }));
  const whole = own.flatMap(({ price }) => (price === null || price.isHalf ? [] : (price.price ?? [])));
  const paid = whole.find(({ setting }) => setting === 'price');
  if (paid !== undefined) return paid;
  const others = own.filter(({ price }) => price === null || price.price === null || price.isHalf);
  if (others.length === 0 && whole[0] !== undefined) return whole[0];
  const unpriced = others.map(({ one }) => one);
  const [half] = others.flatMap(({ price }) => price?.price ?? []);
  const isUnread = others.some(({ price }) => price !== null && price.price === null);
  return (
    listPrice(unpriced, [...taken, ...behind]) ??
    half ??
    whole[0] ??
    free(isUnread || isListed(unpriced) ? 'unlisted' : 'unknown')
  );
}

/** The price that the public list has for entries, by one name for all `routes` or by that of an entry; `null` for none. */
function listPrice(own: readonly Taken[], routes: readonly Taken[]): ImportedPrice | null {
  const based = firstListed(own.flatMap(({ deployment }) => baseNames(deployment)));
  if (based !== null) return based;
  const [first = null, ...more] = routes.map(termsAt);
  if (first !== null && more.every((terms) => isDeepStrictEqual(terms, first)))
    return { setting: 'price', value: 'list', origin: 'list', terms: first };
  return firstListed(own.flatMap(listNames));
}

/** Whether the list knows the provider of one of these entries. */
function isListed(own: readonly Taken[]): boolean {
  return own.some(({ target: { line, listName } }) =>
    listName === undefined ? modelsAt(listUrl(line)) !== null : hasProvider(listName),
  );
}

/** Whether an entry costs something, by its own price or by that of its provider. */
export function isPaid(one: Taken): boolean {
  const { price } = ownPrice(one.deployment) ?? { price: null };
  return price === null ? termsAt(one) !== null : price.setting === 'price';
}

/** The address that the list may know; none where a variable has it. */
export function listUrl({ url }: ImportedLine): string {
  return url.includes('${') ? '' : url;
}

function firstListed(names: readonly string[]): ImportedPrice | null {
  for (const list of names) {
    const terms = findListPrice(list);
    if (typeof terms !== 'string') return { setting: 'price', value: { list }, origin: 'list', terms };
  }
  return null;
}

function baseNames({ info }: Deployment): readonly string[] {
  const base = textOf(info, 'base_model');
  return base === null ? [] : [base, `openai/${base}`];
}

/** The names that the list may have for a deployment. */
function listNames({ deployment, target: { line, model, listName = deployment.model } }: Taken) {
  const atAddress = listNameAt(listUrl(line), model);
  return atAddress === null ? [listName] : [atAddress, listName];
}

function termsAt({ target: { line, model } }: Taken): ListedTerms | null {
  const terms = findPriceAt(listUrl(line), model);
  return typeof terms === 'string' ? null : terms;
}

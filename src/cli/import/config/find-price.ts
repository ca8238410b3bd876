import { isDeepStrictEqual } from 'node:util';
import { findListPrice, findPriceAt, hasProvider, listNameAt, modelsAt } from '../../../prices/find-price.ts';
import type { ListedTerms } from '../../../prices/list-price.ts';
import { formatUsd, parseUsd, plainDecimal } from '../../../shared/money.ts';
import type { Target } from './find-target.ts';
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

/** The price of a deployment that has prices of its own, exact; `null` for any other. */
export function ownPrice(deployment: Deployment): ImportedPrice | null {
  const base = pricesOf(deployment, '');
  return base['input'] === undefined || base['output'] === undefined ? null : withThreshold(base, deployment);
}

/** The price of one that has that of input or output alone: the other is 0, as it is there. */
function halfPrice(deployment: Deployment): ImportedPrice | null {
  const { input = '0', output = '0', ...caches } = pricesOf(deployment, '');
  return input === output ? null : withThreshold({ input, ...caches, output }, deployment);
}

function withThreshold(base: Readonly<Record<string, string>>, deployment: Deployment): ImportedPrice {
  if (Object.values(base).every((price) => price === '0')) return free('own');
  const [first] = thresholdsOf(deployment);
  const above = first === undefined ? {} : pricesOf(deployment, endingAt(first));
  // What has no other price there costs what it costs below.
  const value =
    Object.keys(above).length === 0 ? base : { ...base, above: { inputTokens: first, ...base, ...above } };
  return { setting: 'price', value, origin: 'own', terms: null };
}

/** Whether a deployment has prices above thresholds that `ownPrice` leaves out: those above a second one, or no prices at all. */
export function hasOtherThresholds(deployment: Deployment): boolean {
  const [first, ...others] = thresholdsOf(deployment);
  if (first === undefined) return false;
  return others.length > 0 || Object.keys(pricesOf(deployment, endingAt(first))).length === 0;
}

/** The thresholds above which a deployment has other prices, in tokens of a prompt, ascending. */
function thresholdsOf({ params, info }: Deployment): readonly number[] {
  const found = [...params.keys(), ...info.keys()].flatMap((name) => {
    const [, litellms, thousands] = /^(\w+?)_above_(\d{1,6})k_tokens$/.exec(name) ?? [];
    return ownNames.some(([own]) => own === litellms) ? [Number(thousands) * 1_000] : [];
  });
  return [...new Set(found)].toSorted((one, other) => one - other);
}

function endingAt(threshold: number): string {
  return `_above_${threshold / 1_000}k_tokens`;
}

/** Whether a deployment has a price of tokens, be it one that can be read or not. */
export function hasOwnPrice({ params, info }: Deployment): boolean {
  return ownNames.some(([name]) => params.has(name) || info.has(name));
}

function free(origin: 'own' | 'unlisted' | 'unknown'): ImportedPrice {
  return { setting: 'free', value: true, origin, terms: null };
}

/** The prices per million tokens whose names in LiteLLM end in a certain way. */
function pricesOf({ params, info }: Deployment, ending: string): Record<string, string> {
  return Object.fromEntries(
    ownNames.flatMap(([litellms, ours]) => {
      const text = textOf(params, litellms + ending) ?? textOf(info, litellms + ending);
      const price = text === null ? null : perMillion(text);
      return price === null ? [] : [[ours, price]];
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
 * The price of a model by the public list: that of the model that an entry names as its base, or the one that all its routes
 * have, or that of the first route with a price; without one, what an entry says of input or output alone. Else it is free.
 */
export function listPrice(own: readonly Taken[], others: readonly Taken[]): ImportedPrice {
  const based = firstListed(own.flatMap(({ deployment }) => baseNames(deployment)));
  if (based !== null) return based;
  const [first = null, ...more] = [...own, ...others].map(termsAt);
  if (first !== null && more.every((terms) => isDeepStrictEqual(terms, first)))
    return { setting: 'price', value: 'list', origin: 'list', terms: first };
  const isKnown = own.some(({ target: { line, listName } }) =>
    listName === undefined ? !line.url.includes('${') && modelsAt(line.url) !== null : hasProvider(listName),
  );
  const [half = null] = own.flatMap(({ deployment }) => halfPrice(deployment) ?? []);
  return firstListed(own.flatMap(listNames)) ?? half ?? free(isKnown ? 'unlisted' : 'unknown');
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
  const atAddress = line.url.includes('${') ? null : listNameAt(line.url, model);
  return atAddress === null ? [listName] : [atAddress, listName];
}

function termsAt({ target: { line, model } }: Taken): ListedTerms | null {
  if (line.url.includes('${')) return null;
  const terms = findPriceAt(line.url, model);
  return typeof terms === 'string' ? null : terms;
}

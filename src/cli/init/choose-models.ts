import { formatUsd } from '../../shared/money.ts';
import { maxModelNameLength } from '../../shared/schema-values.ts';
import { reserved } from '../../config/cross-checks.ts';
import { chosenName } from '../../config/schema/values.ts';
import { findListPrice, findPriceAt, modelsAt } from '../../prices/find-price.ts';
import type { ListedTerms } from '../../prices/list-price.ts';
import type { AskedUpstream } from './known-upstreams.ts';

/** How many models of an upstream are written: a list of more is not read by anyone. */
const maxModels = 50;

/** A model for the config. */
export interface ChosenModel {
  readonly name: string;
  readonly route: { readonly upstream: string; readonly model: string };
  readonly price: ChosenPrice;
}

/** What requests for a model cost, and what is said of it. */
type ChosenPrice =
  | { readonly kind: 'list'; readonly terms: ListedTerms }
  | { readonly kind: 'named'; readonly list: string; readonly terms: ListedTerms }
  /** The list has no price, although it may know the provider. */
  | { readonly kind: 'free'; readonly isProviderKnown: boolean };

/** The models of an upstream, and how many of its list are left out. */
export interface ChosenModels {
  readonly upstream: AskedUpstream;
  readonly models: readonly ChosenModel[];
  readonly leftOut: number;
}

/** What the operator has chosen of the models of an upstream. */
export interface ModelChoice {
  /** The models by their names there; empty for those that it lists. */
  readonly models: readonly string[];
  /** The name in the list of prices for models that it does not find by itself; `null` for none. */
  readonly price: string | null;
}

/**
 * Chooses the models that are written: those that are named, or the newest of the upstream's list. Of a provider that the list
 * of prices knows they are those with a price in it: the others make pictures, sound or numbers, or have been withdrawn.
 */
export function chooseModels(
  upstream: AskedUpstream,
  choice: ModelChoice,
  taken: ReadonlySet<string>,
): ChosenModels {
  const { name, line, listed } = upstream;
  const all = listed.kind === 'listed' ? listed.names : [];
  const names = choice.models.length > 0 ? choice.models : ofText(line.url, all).slice(0, maxModels);
  const models = names.map((model) => ({
    name: taken.has(model) ? `${name}/${model}` : model,
    route: { upstream: name, model },
    price: priceOf(line.url, model, choice.price),
  }));
  return {
    upstream,
    models,
    leftOut: all.filter((model) => isWritable(model) && !names.includes(model)).length,
  };
}

/** The models of a list that answer with text, as far as their names and the list of prices say so. */
function ofText(url: string, listed: readonly string[]): readonly string[] {
  const all = listed.filter(isWritable);
  const known = modelsAt(url);
  const priced = known === null ? [] : all.filter((model) => typeof findPriceAt(url, model) !== 'string');
  // A provider lists each model once more for each of its dates.
  const named = priced.filter((model) => known?.has(model));
  const others = all.filter((model) => !/embed|rerank/i.test(model));
  return [named, priced].find((some) => some.length > 0) ?? others;
}

/** Whether a config can have a name: a $ would begin a reference, << merges objects, and other blanks than spaces get lost. */
export function isWritable(model: string): boolean {
  const isName = chosenName.safeParse(model).success && model.length <= maxModelNameLength;
  return isName && !/\$|[^\S ]/.test(model) && model !== reserved && model !== '<<';
}

function priceOf(url: string, model: string, named: string | null): ChosenPrice {
  const terms = findPriceAt(url, model);
  if (typeof terms !== 'string') return { kind: 'list', terms };
  if (named === null) return { kind: 'free', isProviderKnown: modelsAt(url) !== null };
  const found = findListPrice(named);
  if (typeof found === 'string') throw new Error(`--price: ${found}`);
  return { kind: 'named', list: named, terms: found };
}

/** The price of a million tokens, for a comment. */
export function describePrice({ price, priceChanges = [] }: ListedTerms): string {
  const { input, output, above } = price;
  const more = above === null && priceChanges.length === 0 ? '' : ', and others by size or time';
  return `$${formatUsd(input)} in and $${formatUsd(output)} out per million tokens${more}`;
}

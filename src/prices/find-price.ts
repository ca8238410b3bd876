import type { Provider } from '@pydantic/genai-prices';
import { nearestName } from '../shared/nearest-name.ts';
import { listPrice, once } from './list-price.ts';
import type { Factor, ListedTerms } from './list-price.ts';
import { openPriceList } from './open-price-list.ts';

/** How many names of the list a refusal has at the most. */
const maxNames = 5;

/** The price of a name in the list, such as `openai/gpt-4o-mini`, times a factor; or why there is none. */
export function findListPrice(name: string, factor: Factor = once): ListedTerms | string {
  const [id, model] = splitName(name);
  if (id === '') return 'expected the provider and its name of the model, such as openai/gpt-4o-mini';
  const provider = openPriceList().provider(id);
  return provider === null
    ? `the list of prices has no provider '${id}': 'textgate prices' shows those that it has`
    : priceAtProvider(provider, model, factor);
}

/** The price of a model by its name at the provider whose API has an address; or why there is none. */
export function findPriceAt(url: string, model: string): ListedTerms | string {
  const provider = openPriceList().providerAt(url);
  return provider === null
    ? 'the list of prices has no provider with the address of this upstream: name one, such as { list: openai/gpt-4o-mini }'
    : priceAtProvider(provider, model, once);
}

/** The name in the list of a model by its name at the provider whose API has an address; `null` where no provider has it. */
export function listNameAt(url: string, model: string): string | null {
  const provider = openPriceList().providerAt(url);
  return provider === null ? null : `${provider.id}/${model}`;
}

/** The models with a price of the provider whose API has an address, by names that can be asked for. */
export function pricedModelsAt(url: string): readonly string[] {
  const { models = [] } = openPriceList().providerAt(url) ?? {};
  const named = models.filter(({ id, deprecated }) => deprecated !== true && !/^ft:|-$/.test(id));
  return named.flatMap((model) => (typeof listPrice(model, once) === 'string' ? [] : [model.id]));
}

/** Whether the list has the provider of a name such as `openai/gpt-4o-mini`. */
export function hasProvider(name: string): boolean {
  return openPriceList().provider(splitName(name)[0]) !== null;
}

/** The names that the list has for the models of the provider whose API has an address; `null` where there is none. */
export function modelsAt(url: string): ReadonlySet<string> | null {
  const provider = openPriceList().providerAt(url);
  return provider === null ? null : new Set(provider.models.map(({ id }) => id));
}

function priceAtProvider(provider: Provider, name: string, factor: Factor): ListedTerms | string {
  const list = openPriceList();
  // An API that serves models of others, too, may have its own name in front of its own ones.
  const model = list.model(provider, name) ?? list.model(provider, name.replace(`${provider.id}/`, ''));
  if (model === null) {
    const near = nearestNames(
      name,
      provider.models.map(({ id }) => id),
    );
    return `the list of prices has no model '${name}' of ${provider.id}${near === '' ? `: 'textgate prices ${provider.id}/' shows those that it has` : `; it has ${near}`}`;
  }
  const price = listPrice(model, factor);
  return typeof price === 'string'
    ? `the list of prices has no price of ${provider.id}/${model.id} that can be charged: ${price}`
    : price;
}

/** The provider and the model in a name of the list; an empty provider where it has none. */
function splitName(name: string): readonly [provider: string, model: string] {
  const slash = name.indexOf('/');
  return slash < 1 || slash === name.length - 1 ? ['', name] : [name.slice(0, slash), name.slice(slash + 1)];
}

/** The names that are nearest to an unknown one: the closest, and those with the same beginning. */
function nearestNames(wrong: string, known: readonly string[]): string {
  const closest = nearestName(wrong, known);
  const beginning = wrong.slice(0, Math.max(3, Math.ceil(wrong.length / 2))).toLowerCase();
  const similar = known.filter((name) => name.toLowerCase().startsWith(beginning));
  return [...new Set([...(closest === null ? [] : [closest]), ...similar])].slice(0, maxNames).join(', ');
}

import { calcPrice, findProvider, updatePrices, waitForUpdate } from '@pydantic/genai-prices';
import type { ModelInfo, Provider } from '@pydantic/genai-prices';

/** The public prices of providers, as a package has them: it is loaded where a config, or a command, asks for them. */
export interface PriceList {
  /** The provider of an id such as `openai`; `null` where there is none. */
  readonly provider: (id: string) => Provider | null;
  /** The one whose API has an address. */
  readonly providerAt: (url: string) => Provider | null;
  /** A model by one of the names that its provider's API has for it; `null` where there is none. */
  readonly model: (provider: Provider, name: string) => ModelInfo | null;
  /** All providers. */
  readonly all: () => Promise<readonly Provider[]>;
  /** Puts another list in the place of this one, in this process. Throws where it is none. */
  readonly replace: (providers: unknown) => void;
}

/** Loaded by its name alone: see `open-price-list.ts`. */
export const priceList: PriceList = {
  provider(id) {
    const found = findProvider({ providerId: id });
    // The package also finds a provider whose name is a part of the id.
    return found?.id === id ? found : null;
  },
  providerAt(url) {
    const found = findProvider({ providerApiUrl: url });
    if (found === undefined) return null;
    // A pattern has no end: another host may begin with that of a provider.
    const [matched = ''] = new RegExp(`^(?:${found.api_pattern})`).exec(url) ?? [];
    return matched.endsWith('/') || /^(?:[/:?#]|$)/.test(url.slice(matched.length)) ? found : null;
  },
  model(provider, name) {
    const own = provider.models.find(({ id }) => id === name);
    if (own !== undefined) return own;
    const found = calcPrice({ input_tokens: 0 }, name, { providerId: provider.id })?.model ?? null;
    return found !== null && isNameOf(name.toLowerCase(), found) ? found : null;
  },
  all: async () => (await waitForUpdate()) ?? [],
  replace(providers) {
    if (!Array.isArray(providers)) throw new Error('expected an array of providers');
    updatePrices(({ setProviderData }) => setProviderData(providers as Provider[]));
  },
};

/** What may follow a model's name in another name of the same model: a date, a version, or that it is the latest one. */
const sameModel = /^[-@:.](?:20\d{2}-?\d{2}-?\d{2}|latest|default|v\d+(?:[:.]\d+)?)$/;

/**
 * Whether a name is one that the list has for a model. The package also takes names that begin like one, or have one in them:
 * those may be of later models, with other prices.
 */
function isNameOf(name: string, { id, match }: ModelInfo): boolean {
  const known = id.toLowerCase();
  return hasName(match, name) || (name.startsWith(known) && sameModel.test(name.slice(known.length)));
}

function hasName(match: ModelInfo['match'], name: string): boolean {
  const { equals, or } = match as { readonly equals?: string; readonly or?: readonly ModelInfo['match'][] };
  return equals?.toLowerCase() === name || (or ?? []).some((one) => hasName(one, name));
}

import { calcPrice, findProvider, updatePrices, waitForUpdate } from '@pydantic/genai-prices';
import type { MatchLogic, ModelInfo, Provider } from '@pydantic/genai-prices';

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
  providerAt(address) {
    const url = address.replace(...otherAddress);
    const found = findProvider({ providerApiUrl: url });
    if (found === undefined) return null;
    // A pattern has no end: another host may begin with that of a provider.
    const [matched = ''] = new RegExp(`^(?:${found.api_pattern})`).exec(url) ?? [];
    const ending = matched.endsWith('.') ? /^[a-z]+(?:[/:?#]|$)/ : /^(?:[/:?#]|$)/;
    return matched.endsWith('/') || ending.test(url.slice(matched.length)) ? found : null;
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

/** The address that Together documents today, and the one that the list has. */
const otherAddress = [/^https:\/\/api\.together\.ai(?=[/:?#]|$)/, 'https://api.together.xyz'] as const;

/** What may follow a model's name in another name of the same model: a date, a version, or that it is the latest one. */
const sameModel =
  /^(?:[-@:.](?:20\d{2}-?\d{2}-?\d{2}|latest|default|\d{3}|(?:preview-)?\d{2}-(?:20)?\d{2}|v\d+(?:[:.]\d+)?))?$/;

/** What of a name of the list is the beginning of a date or of a version. */
const openEnd = /(?:[-@](?:20\d{2}-?)?|-0)$/;

/**
 * Whether a name is one that the list has for a model. The package also takes names that begin like one, or have one in them:
 * those may be of later models, with other prices.
 */
function isNameOf(name: string, { id, match }: ModelInfo): boolean {
  return [id, ...namesIn(match)].some((text) => {
    const known = text.toLowerCase();
    const begin = known.replace(openEnd, '');
    return name === known || (name.startsWith(begin) && sameModel.test(name.slice(begin.length)));
  });
}

/** The names, and parts of names, by which the list knows a model. */
function namesIn(match: MatchLogic): readonly string[] {
  return Object.values(match).flatMap((value: string | MatchLogic[]) =>
    typeof value === 'string' ? [value] : value.flatMap(namesIn),
  );
}

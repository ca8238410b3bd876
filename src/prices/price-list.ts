import { calcPrice, findProvider, waitForUpdate } from '@pydantic/genai-prices';
import type { ModelInfo, Provider } from '@pydantic/genai-prices';

/** The public prices of providers, as a package has them: it is loaded where a config, or a command, asks for them. */
export interface PriceList {
  /** The provider of an id such as `openai`; `null` where there is none. */
  readonly provider: (id: string) => Provider | null;
  /** The one whose API has an address. */
  readonly providerAt: (url: string) => Provider | null;
  /** A model by the name that its provider's API has for it, also by one of its dated names; `null` where there is none. */
  readonly model: (provider: Provider, name: string) => ModelInfo | null;
  /** All providers. */
  readonly all: () => Promise<readonly Provider[]>;
}

/** Loaded by its name alone: see `open-price-list.ts`. */
export const priceList: PriceList = {
  provider(id) {
    const found = findProvider({ providerId: id });
    // The package also finds a provider whose name is a part of the id.
    return found?.id === id ? found : null;
  },
  providerAt: (url) => findProvider({ providerApiUrl: url }) ?? null,
  model: (provider, name) => calcPrice({ input_tokens: 0 }, name, { providerId: provider.id })?.model ?? null,
  all: async () => (await waitForUpdate()) ?? [],
};

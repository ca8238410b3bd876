import type { ModelPrice } from '../money/pricing.ts';

/** Where a share of a model's requests is also sent, and what that may take. */
export interface ShadowTerms {
  /** The model's name for clients. */
  readonly model: string;
  /** The second upstream, and the model's name there. */
  readonly route: { readonly upstream: string; readonly model: string };
  /** The share of the requests, from 0 to 1. */
  readonly share: number;
  /** What the provider of the route asks. */
  readonly price: ModelPrice;
  /** What may be spent in a day in UTC, in nano-USD; `null` for a free route. */
  readonly budgetNanos: number | null;
  /** How many of the requests may be in progress at a time. */
  readonly maxInFlight: number;
}

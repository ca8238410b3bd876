import type { RouteMeasure } from './route-measure.ts';

/** When a model's request is sent a second time, to another route, and how often that may be. */
export interface HedgePolicy {
  /** After which time without text: in milliseconds, or within which a share of the route's recent first texts came. */
  readonly after:
    | { readonly kind: 'time'; readonly ms: number }
    | { readonly kind: 'quantile'; readonly share: number };
  /** How many second requests there may be for each other request to an upstream. */
  readonly budget: number;
}

/**
 * What became of a second request: its text was first (`won`) or that of the first request was (`lost`), neither brought
 * a text (`failed`), or it was not sent because the budget was used up (`refused`).
 */
export type HedgeResult = 'won' | 'lost' | 'failed' | 'refused';

/** How many recent first texts of a route must be known before their quantile is used. */
export const minFirstTexts = 20;

/** How many second requests may be saved up while none is needed: they could all be sent at once. */
export const maxSavedHedges = 10;

/** The most models that are remembered: those that the config no longer has are forgotten so. */
const maxModels = 1_000;

/** Rounding of a budget that was saved up in small parts must not cost a second request. */
const roundingError = 1e-9;

/** After which time without text a second request is sent, in milliseconds; `null` while too little is known. */
export function hedgeDelayMs(
  { after }: HedgePolicy,
  measure: Pick<RouteMeasure, 'firstTexts' | 'firstTextWithin'> | null,
  nowMs: number,
): number | null {
  if (after.kind === 'time') return after.ms;
  if (measure === null || measure.firstTexts(nowMs) < minFirstTexts) return null;
  return measure.firstTextWithin(after.share);
}

/** The second requests that the models of a process may still send: a share of their other requests to upstreams. */
export class HedgeBudgets {
  readonly #saved = new Map<string, number>();

  /** Notes a request to an upstream of a model, which lets its budget grow. */
  sent(model: string, { budget }: HedgePolicy): void {
    const saved = this.#saved.get(model);
    if (saved === undefined && this.#saved.size >= maxModels) this.#saved.clear();
    this.#saved.set(model, Math.min(maxSavedHedges, (saved ?? 0) + budget));
  }

  /** Takes a second request from the budget of a model; returns false if there is none left. */
  spend(model: string): boolean {
    const saved = this.#saved.get(model) ?? 0;
    if (saved < 1 - roundingError) return false;
    this.#saved.set(model, saved - 1);
    return true;
  }

  /** Gives back what was taken for a second request that is not sent. */
  giveBack(model: string): void {
    this.#saved.set(model, (this.#saved.get(model) ?? 0) + 1);
  }
}

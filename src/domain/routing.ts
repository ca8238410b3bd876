import type { Price } from './pricing.ts';
import type { FinishReasonRule } from '../protocol/text.ts';

/** The protocols that we speak to providers. */
export type DialectName = 'chat' | 'responses' | 'anthropic' | 'gemini';

/** How an upstream speaks. */
interface Speech {
  readonly dialect: DialectName;
  /** What its answers need at their end to count as whole. */
  readonly finishReason: FinishReasonRule;
}

/** What a client that leaves in the middle of an answer pays; `settlement.ts` has the table. */
export type OnDisconnect = 'estimate' | 'drain' | 'free';

/** Where models are: an upstream by its configured name, and how it speaks. */
export interface ModelSource {
  readonly upstream: string;
  readonly speech: Speech;
  readonly onDisconnect: OnDisconnect;
}

/** One way to serve a model: where it is, and its name there. */
export interface Route extends ModelSource {
  readonly model: string;
}

/** Where a request goes: the model that it names, and one of its routes. */
export interface Destination {
  readonly model: OfferedModel;
  readonly route: Route;
}

/** A model as the service offers it. */
export interface OfferedModel {
  readonly id: string;
  /** Seconds since 1970. */
  readonly createdAt: number;
  /** Tried in this order. */
  readonly routes: readonly Route[];
  readonly price: Price;
  /** Output tokens to expect of a request that names no cap of its own. */
  readonly holdTokens: number;
}

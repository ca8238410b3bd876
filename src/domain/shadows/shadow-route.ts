import type { Route } from '../routing.ts';
import type { ShadowTerms } from './shadow-terms.ts';

/** Where copies of a model's requests go, and how the upstream is called. */
export interface ShadowRoute extends ShadowTerms {
  readonly route: Route;
  /** Output tokens to expect of an answer. */
  readonly holdTokens: number;
}

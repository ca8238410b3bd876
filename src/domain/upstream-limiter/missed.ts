import type { RequestTokens } from '../ports/upstream-limiters.ts';
import type { Model } from './lanes.ts';

/** For how many models of one upstream requests are remembered that could not start. */
const maxMissed = 100;

/** The latest request for each model that could not start at once and did not wait, until their needs are told. */
export class Missed {
  #requests = new Map<Model, RequestTokens>();

  add(model: Model, tokens: RequestTokens): void {
    if (this.#requests.size < maxMissed) this.#requests.set(model, tokens);
  }

  /** What each model needs; they are forgotten. */
  take(): ReadonlyMap<Model, RequestTokens> {
    const taken = this.#requests;
    this.#requests = new Map();
    return taken;
  }
}

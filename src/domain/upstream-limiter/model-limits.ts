import type { LimitUse, UpstreamLimit } from '../ports/quotas.ts';
import type { LimitSettings, RequestTokens } from '../ports/upstream-limiters.ts';
import type { Extent } from './configured-limits.ts';
import type { Model } from './lanes.ts';
import type { Load } from './load.ts';
import { Pauses } from './pauses.ts';
import { CountedLimits } from './counted-limits.ts';

/** What a limiter depends on. */
export interface LimiterPorts {
  /** How much of a limit this process may use now, if it shares them with others; `name` is that of the limits. */
  readonly quotaOf: (name: string, limit: UpstreamLimit) => number;
  /** How long a model is not to be used for a reason that its limiter does not know, in milliseconds. */
  readonly pausedMs: (model: Model) => number;
}

/** What holds the requests for some models of an upstream and no others: limits of their own, and pauses. */
export class ModelLimits {
  readonly #upstream: string;
  readonly #ports: LimiterPorts;
  readonly #limits = new Map<string, CountedLimits>();
  #someLearn = false;
  #firstConfig = 0;
  pauses = new Pauses();

  constructor(upstream: string, ports: LimiterPorts) {
    this.#upstream = upstream;
    this.#ports = ports;
  }

  /** The limits of a model, if it has its own. */
  of(model: Model): CountedLimits | undefined {
    return model === null ? undefined : this.#limits.get(model);
  }

  /** Whether a model learns limits of its own: then what is learned of all models is nothing of it. */
  learns(model: Model): boolean {
    return this.of(model)?.settings.learnLimits === true;
  }

  /** Whether any model learns limits of its own. */
  get someLearn(): boolean {
    return this.#someLearn;
  }

  all(): ReadonlyMap<string, CountedLimits> {
    return this.#limits;
  }

  /** Takes other settings. What is in progress under limits that are gone ends under them. */
  configure(settings: ReadonlyMap<string, LimitSettings>): void {
    for (const [model, wanted] of settings) {
      const known = this.#limits.get(model);
      if (known === undefined) this.#limits.set(model, this.#create(model, wanted));
      else known.configure(wanted);
    }
    this.#someLearn = [...settings.values()].some(({ learnLimits }) => learnLimits);
    for (const model of this.#limits.keys()) if (!settings.has(model)) this.#limits.delete(model);
  }

  forget(config: number): void {
    this.#firstConfig = config;
    for (const limits of this.#limits.values()) limits.forget(config);
    this.pauses = new Pauses();
  }

  /** In how many milliseconds nothing of a model alone holds a request; `Infinity` if another one has to end first. */
  startsInMs(model: Model, tokens: RequestTokens, extent: Extent, nowMs: number): number {
    const atMs = Math.max(
      this.pauses.overAtMs(model, extent),
      this.of(model)?.availableAtMs(tokens, extent, nowMs) ?? 0,
    );
    return Math.max(0, atMs - nowMs, this.#ports.pausedMs(model));
  }

  /** How long a request for a model has to wait behind others of it, in milliseconds: an estimate. */
  waitMs(model: Model, ahead: Load, tokens: RequestTokens, nowMs: number): number {
    const waitMs = this.of(model)?.waitMs(ahead, tokens, nowMs) ?? 0;
    return Math.max(waitMs, this.pauses.leftMs(model, nowMs), this.#ports.pausedMs(model));
  }

  /** What is used of the configured limits; `needs` says what waits for a model. */
  uses(needs: (model: string) => Load, nowMs: number): readonly LimitUse[] {
    return [...this.#limits].flatMap(([model, limits]) => limits.uses(needs(model), nowMs));
  }

  #create(model: string, settings: LimitSettings): CountedLimits {
    // Names of upstreams are chosen by operators, who have no reason to write one in this form.
    const name = JSON.stringify([this.#upstream, model]);
    const limits = new CountedLimits(name, settings, (limit) => this.#ports.quotaOf(name, limit));
    limits.forget(this.#firstConfig);
    return limits;
  }
}

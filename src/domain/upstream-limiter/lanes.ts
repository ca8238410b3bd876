import type { RequestTokens } from '../ports/upstream-limiters.ts';
import type { Target } from '../upstreams/sent-request.ts';
import { LoadSum, noLoad } from './load.ts';
import type { Ahead, Load } from './load.ts';

/** A model by its name at an upstream; `null` for what is passed on verbatim. */
export type Model = Target['model'];

/** The members of a queue that wait for the same models: for any of them. */
export interface Lane {
  readonly models: readonly Model[];
  /** Its members, added up. */
  readonly load: LoadSum;
}

/** The lanes whose members are passed over. */
export type HeldLanes = ReadonlySet<Lane>;

export const noLanes: HeldLanes = new Set();

/** The lanes that are held, and the members of all others, added up. */
export interface HeldAndOpen {
  readonly held: HeldLanes;
  readonly open: Load;
}

/** The lanes of a queue that have members. */
export class Lanes {
  readonly #lanes = new Map<string, Lane>();
  /** The members that wait for each model: a request for it asks how many there are. */
  readonly #ofModels = new Map<Model, LoadSum>();

  /** Adds a member that waits for some models; returns its lane. */
  join(models: Lane['models'], tokens: RequestTokens): Lane {
    const name = nameOf(models);
    const lane = this.#lanes.get(name) ?? { models, load: new LoadSum() };
    this.#lanes.set(name, lane);
    lane.load.add(tokens);
    for (const model of new Set(models)) {
      const sum = this.#ofModels.get(model) ?? new LoadSum();
      this.#ofModels.set(model, sum);
      sum.add(tokens);
    }
    return lane;
  }

  leave({ models, load }: Lane, tokens: RequestTokens): void {
    load.remove(tokens);
    if (load.requests === 0) this.#lanes.delete(nameOf(models));
    for (const model of new Set(models)) {
      const sum = this.#ofModels.get(model);
      sum?.remove(tokens);
      if (sum?.requests === 0) this.#ofModels.delete(model);
    }
  }

  get size(): number {
    return this.#lanes.size;
  }

  all(): readonly Lane[] {
    return [...this.#lanes.values()];
  }

  /** The members that wait for a model, added up. */
  waitingFor(model: Model): Load {
    return this.#ofModels.get(model) ?? noLoad;
  }

  /** The lanes that are held, by a rule. */
  split(isHeld: (lane: Lane) => boolean): HeldAndOpen {
    const held = new Set<Lane>();
    const open = new LoadSum();
    for (const lane of this.#lanes.values())
      if (isHeld(lane)) held.add(lane);
      else open.addAll(lane.load);
    return { held, open };
  }

  /** What would be ahead of one that joins now and waits for some models: members of other lanes that are held do not count. */
  ahead(models: Lane['models'], { held, open }: HeldAndOpen): Ahead {
    const own = this.#lanes.get(nameOf(models));
    const all = new LoadSum(open);
    if (own !== undefined && held.has(own)) all.addAll(own.load);
    return { all, lane: own?.load ?? noLoad };
  }
}

function nameOf(models: Lane['models']): string {
  return JSON.stringify(models);
}

import type { RoomTokens } from '../ports/rooms.ts';
import type { Target } from '../upstreams/sent-request.ts';
import { LoadSum } from './load.ts';
import type { Ahead, Load } from './load.ts';

/** The members of a queue that wait for the same models: for any of them. */
export interface Lane {
  readonly models: readonly Target['model'][];
  /** Its members, added up. */
  readonly load: LoadSum;
}

/** Says of lanes whether their members are passed over. */
export type IsHeld = (lane: Lane) => boolean;

/** The lanes of a queue that have members. */
export class Lanes {
  readonly #lanes = new Map<string, Lane>();

  /** Adds a member that waits for some models; returns its lane. */
  join(models: Lane['models'], tokens: RoomTokens): Lane {
    const name = nameOf(models);
    const lane = this.#lanes.get(name) ?? { models, load: new LoadSum() };
    this.#lanes.set(name, lane);
    lane.load.add(tokens);
    return lane;
  }

  leave({ models, load }: Lane, tokens: RoomTokens): void {
    load.remove(tokens);
    if (load.requests === 0) this.#lanes.delete(nameOf(models));
  }

  all(): readonly Lane[] {
    return [...this.#lanes.values()];
  }

  /** The members that wait for a model, added up. */
  waitingFor(model: Target['model']): Load {
    const sum = new LoadSum();
    for (const { models, load } of this.#lanes.values()) if (models.includes(model)) sum.addAll(load);
    return sum;
  }

  /** What would be ahead of one that joins now and waits for some models: members of other lanes that are held do not count. */
  ahead(models: Lane['models'], isHeld: IsHeld): Ahead {
    const own = this.#lanes.get(nameOf(models));
    const all = new LoadSum();
    for (const lane of this.#lanes.values()) if (lane === own || !isHeld(lane)) all.addAll(lane.load);
    return { all, lane: new LoadSum(own?.load) };
  }
}

function nameOf(models: Lane['models']): string {
  return JSON.stringify(models);
}

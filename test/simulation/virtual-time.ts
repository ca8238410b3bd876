/** What events belong to: they wait while it is paused, and never happen once it is killed. */
export interface Actor {
  readonly name: string;
  readonly pausedUntilMs: number;
  readonly isKilled: boolean;
}

interface Event {
  dueMs: number;
  /** Events of the same time happen in the order in which they were added. */
  order: number;
  readonly happen: () => void;
  readonly actor: Actor | null;
  isCancelled: boolean;
}

/** How many events are handed to the event loop at once: promises are settled after each of them all the same. */
const handedAtOnce = 256;

/** One queue of events, whose time passes only from one event to the next. All promises are settled between two of them. */
export class VirtualTime {
  #nowMs = 0;
  #events = 0;
  #added = 0;
  readonly #heap: Event[] = [];

  /** Milliseconds since the history began. */
  get nowMs(): number {
    return this.#nowMs;
  }

  /** How many events have happened. */
  get events(): number {
    return this.#events;
  }

  /** Has something happen after a delay; returns a function that cancels it. */
  after(delayMs: number, happen: () => void, actor: Actor | null = null): () => void {
    const event = { dueMs: this.#nowMs + delayMs, order: this.#added++, happen, actor, isCancelled: false };
    this.#add(event);
    return () => void (event.isCancelled = true);
  }

  /** Runs events until none is left or `isOver` says so; rejects with what one of them throws. */
  run(isOver: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      let handed = 0;
      let isEnded = false;
      const end = (finish: () => void): void => {
        isEnded = true;
        finish();
      };
      const next = (): void => {
        handed--;
        if (isEnded) return;
        try {
          if (isOver() || !this.#happenNext()) end(resolve);
          else if (handed === 0) hand();
        } catch (error) {
          end(() => reject(error));
        }
      };
      // Promises are settled after each callback of `setImmediate`, also between those of one turn of the event loop.
      const hand = (): void => {
        handed = handedAtOnce;
        for (let count = 0; count < handedAtOnce; count++) setImmediate(next);
      };
      hand();
    });
  }

  /** Makes the next event happen; returns whether there was one. */
  #happenNext(): boolean {
    for (let event = this.#take(); event !== null; event = this.#take()) {
      const { actor } = event;
      if (event.isCancelled || actor?.isKilled === true) continue;
      if (actor !== null && actor.pausedUntilMs > event.dueMs) {
        event.dueMs = actor.pausedUntilMs;
        event.order = this.#added++;
        this.#add(event);
        continue;
      }
      this.#nowMs = event.dueMs;
      this.#events++;
      event.happen();
      return true;
    }
    return false;
  }

  #add(event: Event): void {
    const heap = this.#heap;
    let at = heap.push(event) - 1;
    while (at > 0) {
      const above = (at - 1) >> 1;
      const parent = heap[above] as Event;
      if (!isBefore(event, parent)) break;
      heap[at] = parent;
      at = above;
    }
    heap[at] = event;
  }

  #take(): Event | null {
    const heap = this.#heap;
    const [first] = heap;
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first ?? null;
    let at = 0;
    for (;;) {
      const left = 2 * at + 1;
      if (left >= heap.length) break;
      const right = left + 1;
      const child = right < heap.length && isBefore(heap[right] as Event, heap[left] as Event) ? right : left;
      if (!isBefore(heap[child] as Event, last)) break;
      heap[at] = heap[child] as Event;
      at = child;
    }
    heap[at] = last;
    return first;
  }
}

function isBefore(a: Event, b: Event): boolean {
  return a.dueMs < b.dueMs || (a.dueMs === b.dueMs && a.order < b.order);
}

import type { Clock } from '../../domain/ports/clock.ts';
import type { RoomShares } from '../../domain/ports/room-shares.ts';
import type { RoomRequest, RoomSettings } from '../../domain/ports/rooms.ts';
import type { Extent } from '../../domain/rooms/configured-limits.ts';
import type { Model } from '../../domain/rooms/lanes.ts';
import { Room } from '../../domain/rooms/room.ts';
import type { Target } from '../../domain/upstreams/sent-request.ts';
import type { WaitingEntry } from './waiting-entry.ts';

/** The least time until a queue is looked at again, in milliseconds: timers may be early by less than one. */
const leastDelayMs = 1;

/**
 * How long a request may wait at least, in milliseconds, if it could start but for the share that this process has of a
 * limit: the first one after an idle time comes before its share.
 */
const shareWaitMs = 1_500;

/** What rooms depend on beside the clock; each may be left out. */
export interface RoomsOptions {
  /** How long a target is not to be used for a reason that its room does not know, in milliseconds. */
  readonly pausedMs?: (target: Target) => number;
  /** The shares of the limits that this process has; without it, the limits are its own. */
  readonly shares?: RoomShares | null;
}

const nothing = (): void => {};

/** The room of an upstream, and the timer that looks at its queue when a limit may let the next one in. */
export class TimedRoom extends Room<WaitingEntry> {
  readonly #clock: Clock;
  readonly #options: RoomsOptions;
  #cancel = nothing;

  constructor(upstream: string, settings: RoomSettings, clock: Clock, options: RoomsOptions) {
    const { shares = null, pausedMs = () => 0 } = options;
    super(upstream, settings, {
      shareOf: (name, limit) => shares?.of(name, limit) ?? Number.POSITIVE_INFINITY,
      pausedMs: (model) => pausedMs({ upstream, model }),
    });
    this.#clock = clock;
    this.#options = options;
  }

  /** Whether a request may wait for any of some models: not if the queue is full, or a limit or a pause surely lasts longer. */
  mayBeJoined(models: readonly Model[], request: RoomRequest, nowMs: number): boolean {
    // First of all what costs nothing: a full queue refuses many.
    if (this.isFull(models, nowMs)) return false;
    const patienceMs = this.patienceMs(models, request, nowMs);
    const startsInMs = this.#firstInMs(models, request, 'certain', nowMs);
    const isInTime = startsInMs === Number.POSITIVE_INFINITY || startsInMs < patienceMs;
    return patienceMs > 0 && isInTime;
  }

  /** How long a request may wait for any of some models from now on, in milliseconds; 0 or less if it may not. */
  patienceMs(models: readonly Model[], request: RoomRequest, nowMs: number): number {
    const leftMs = this.queueWaitMs(models) - request.waitedMs;
    const { shares = null } = this.#options;
    const isShareShort = shares !== null && this.#firstInMs(models, request, 'whole', nowMs) === 0;
    return isShareShort ? Math.max(leftMs, shareWaitMs) : leftMs;
  }

  /**
   * Whether a request that joins no queue could start but for the share that this process has. Then it counts among those that
   * wait until the shares are settled once: an upstream that only such requests use would never get a share.
   */
  misses(model: Model, { tokens }: Pick<RoomRequest, 'tokens'>, nowMs: number): boolean {
    const { shares = null } = this.#options;
    // Those that wait for the model show already that a share is needed.
    if (shares === null || this.queue.lanes.waitingFor(model).requests > 0) return false;
    if (this.startsInMs(model, tokens, 'whole', nowMs) > 0) return false;
    this.missed.add(model, tokens);
    return true;
  }

  /** Has the queue looked at once more after a time; not if that is `Infinity`, as another request has to end before. */
  lookAgain(delayMs: number, look: () => void): void {
    this.#cancel();
    this.#cancel =
      delayMs === Number.POSITIVE_INFINITY
        ? nothing
        : this.#clock.schedule(Math.max(leastDelayMs, delayMs), look);
  }

  /** Ends the timer. */
  stop(): void {
    this.#cancel();
  }

  #firstInMs(
    models: readonly Model[],
    { tokens }: Pick<RoomRequest, 'tokens'>,
    extent: Extent,
    nowMs: number,
  ): number {
    return Math.min(...models.map((model) => this.startsInMs(model, tokens, extent, nowMs)));
  }
}

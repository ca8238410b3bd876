import type { Clock } from '../../domain/ports/clock.ts';
import type { RoomShares } from '../../domain/ports/room-shares.ts';
import type { Entry, RoomRequest, RoomSettings, RoomTokens } from '../../domain/ports/rooms.ts';
import type { Extent } from '../../domain/rooms/configured-limits.ts';
import type { Load } from '../../domain/rooms/load.ts';
import { Room } from '../../domain/rooms/room.ts';
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
  /** How long an upstream is not to be used for a reason that its room does not know, in milliseconds. */
  readonly pausedMs?: (upstream: string) => number;
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
    const { shares = null } = options;
    super(upstream, settings, (limit) => shares?.of(upstream, limit) ?? Number.POSITIVE_INFINITY);
    this.#clock = clock;
    this.#options = options;
  }

  /** In how many milliseconds a request may start; 0 at once, `Infinity` if another one has to end first. */
  startsInMs({ tokens }: Pick<RoomRequest, 'tokens'>, extent: Extent, nowMs: number): number {
    return Math.max(this.#unusedMs(), this.availableAtMs(tokens, extent, nowMs) - nowMs);
  }

  /** Whether a request may wait in the queue: not if that is full, or a limit or a pause surely lasts longer than it may wait. */
  mayBeJoined(request: RoomRequest, nowMs: number): boolean {
    // First of all what costs nothing: a full queue refuses many.
    if (this.queue.size >= this.settings.queue) return false;
    const patienceMs = this.patienceMs(request, nowMs);
    const startsInMs = this.startsInMs(request, 'certain', nowMs);
    const isInTime = startsInMs === Number.POSITIVE_INFINITY || startsInMs < patienceMs;
    return patienceMs > 0 && isInTime;
  }

  /** How long a request may wait from now on, in milliseconds; 0 or less if it may not. */
  patienceMs(request: RoomRequest, nowMs: number): number {
    const leftMs = this.settings.queueWaitMs - request.waitedMs;
    const { shares = null } = this.#options;
    const isShareShort = shares !== null && this.startsInMs(request, 'whole', nowMs) === 0;
    return isShareShort ? Math.max(leftMs, shareWaitMs) : leftMs;
  }

  /**
   * Whether a request that joins no queue could start but for the share that this process has. Then it counts among those that
   * wait until the shares are settled once: an upstream that only such requests use would never get a share.
   */
  misses(request: Pick<RoomRequest, 'tokens'>, nowMs: number): boolean {
    const { shares = null } = this.#options;
    if (shares === null || this.queue.size > 0 || this.startsInMs(request, 'whole', nowMs) > 0) return false;
    this.missed = request.tokens;
    return true;
  }

  override expectedMs(ahead: Load, tokens: RoomTokens, nowMs: number): number {
    return Math.max(Math.ceil(this.#unusedMs()), super.expectedMs(ahead, tokens, nowMs));
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

  /** For how long it is not to be used for a reason of its surroundings, in milliseconds. */
  #unusedMs(): number {
    return this.#options.pausedMs?.(this.upstream) ?? 0;
  }
}

/** What a refusal by some rooms says: whose they are, and how long the shortest wait is among them, and how many wait there. */
export function refusalBy(
  rooms: readonly TimedRoom[],
  request: RoomRequest,
  nowMs: number,
): Omit<Extract<Entry, { readonly kind: 'full' }>, 'kind'> {
  let shortest = { waiting: 0, expectedMs: Number.POSITIVE_INFINITY };
  for (const room of rooms) {
    const expectedMs = room.expectedMs(room.queue.load, request.tokens, nowMs);
    if (expectedMs < shortest.expectedMs) shortest = { waiting: room.queue.size, expectedMs };
  }
  return { upstreams: rooms.map(({ upstream }) => upstream), ...shortest };
}

import { within } from '../domain/limits/time-limit.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { RunningRequest, RunningRequests } from '../domain/ports/running-requests.ts';
import { Roster } from '../shared/roster.ts';
import type { Interruption } from './results.ts';

/** One entry of the registry: a view of a request, and a function that stops it. */
interface Running {
  readonly requestId: string;
  view(): RunningRequest;
  interrupt(reason: Interruption): void;
}

/** The requests in progress on this process. */
export interface InFlight extends RunningRequests {
  /** Whether this process is about to drain: requests may start, and no more of them should be sent to it. */
  readonly isLeaving: boolean;
  leave(): void;
  /** False once draining has begun: nothing new may start. */
  readonly accepting: boolean;
  /** Raised when draining begins. */
  readonly draining: AbortSignal;
  /** Adds a request; the returned function removes it. */
  add(running: Running): () => void;
  /** All requests, including those that wait for a slot. */
  all(): readonly Running[];
  has(requestId: string): boolean;
  /** Resolves when a request has ended. */
  ended(running: Running): Promise<void>;
  /** Stops accepting; resolves when no request is left. */
  drained(): Promise<void>;
  /** Stops every running request. */
  interruptAll(reason: Interruption): void;
}

/** Creates an empty registry. */
export function createInFlight(): InFlight {
  const running = new Roster<Running>();
  const find = (requestId: string): Running | undefined =>
    running.all().find((request) => request.requestId === requestId);
  const awaited = new Map<string, PromiseWithResolvers<void>>();
  const draining = new AbortController();
  let isLeaving = false;
  let empty: PromiseWithResolvers<void> | null = null;
  const views = (): readonly RunningRequest[] => running.all().map((request) => request.view());
  return {
    get isLeaving() {
      return isLeaving;
    },
    leave: () => void (isLeaving = true),
    get accepting() {
      return !draining.signal.aborted;
    },
    draining: draining.signal,
    add(request) {
      const position = running.add(request);
      return () => {
        if (!running.remove(position)) return;
        awaited.get(request.requestId)?.resolve();
        awaited.delete(request.requestId);
        if (running.size === 0) empty?.resolve();
      };
    },
    all: () => running.all(),
    has: (requestId) => find(requestId) !== undefined,
    async ended({ requestId }) {
      if (find(requestId) === undefined) return;
      const waiting = awaited.get(requestId) ?? Promise.withResolvers<void>();
      awaited.set(requestId, waiting);
      await waiting.promise;
    },
    list: async () => views().filter(({ keyId }) => keyId !== null),
    count: async (keyIds) => countSlots(views(), keyIds),
    async cancel(requestId, keyId) {
      const found = find(requestId);
      if (found === undefined || (keyId !== undefined && found.view().keyId !== keyId)) return false;
      found.interrupt('cancelled');
      return true;
    },
    async drained() {
      draining.abort();
      if (running.size === 0) return;
      empty ??= Promise.withResolvers<void>();
      await empty.promise;
    },
    interruptAll(reason) {
      for (const request of running.all()) request.interrupt(reason);
    },
  };
}

function countSlots(running: readonly RunningRequest[], ids: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map(ids.map((id) => [id, 0]));
  for (const { keyId, groupId, hasSlot } of running)
    for (const id of [hasSlot ? keyId : null, groupId]) {
      const count = id === null ? undefined : counts.get(id);
      if (id !== null && count !== undefined) counts.set(id, count + 1);
    }
  return counts;
}

/** How long interrupted requests may take to settle, in milliseconds. */
const settleGraceMs = 5_000;

/** How long settling may take in a process that ends after an uncaught error, in milliseconds. */
const crashGraceMs = 3_000;

/** How long settling may take after that when tokens are no longer counted but estimated, in milliseconds. */
const estimateGraceMs = 500;

/** The counting of tokens. Once it is closed, texts that waited for their count are charged by an estimate. */
interface Counting {
  readonly isCounting: boolean;
  close(): Promise<void>;
}

/** Stops accepting requests. Running ones get the drain time; the rest are then interrupted and settled. */
export async function drain(
  inFlight: InFlight,
  counting: Counting,
  drainMs: number,
  clock: Clock,
): Promise<void> {
  if (await within(inFlight.drained(), drainMs, clock)) return;
  inFlight.interruptAll('drained');
  await settleAll(inFlight, counting, settleGraceMs, clock);
}

/** Stops accepting and ends every running request with an error at once; resolves when they are settled. */
export async function interruptForCrash(inFlight: InFlight, counting: Counting, clock: Clock): Promise<void> {
  const settled = settleAll(inFlight, counting, crashGraceMs, clock);
  inFlight.interruptAll('crashed');
  await settled;
}

/** A count that takes too long must not leave a record open, which would not be charged. */
async function settleAll(
  inFlight: InFlight,
  counting: Counting,
  graceMs: number,
  clock: Clock,
): Promise<void> {
  if ((await within(inFlight.drained(), graceMs, clock)) || !counting.isCounting) return;
  await counting.close();
  await within(inFlight.drained(), estimateGraceMs, clock);
}

/** Waits for the last settlements, up to a grace period: the database must not be closed before them. */
export async function awaitSettlements(inFlight: InFlight, clock: Clock): Promise<void> {
  await within(inFlight.drained(), settleGraceMs, clock);
}

import { within } from '../domain/time-limit.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { RunningRequest, RunningRequests } from '../domain/ports/running-requests.ts';
import { refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import { Roster } from '../shared/roster.ts';
import type { Interruption } from './results.ts';

/** One entry of the registry: a view of a request, and a function that stops it. */
interface Running {
  readonly requestId: string;
  view(): RunningRequest;
  interrupt(reason: Interruption): void;
}

/** How many requests that do not end are named. */
const maxNamed = 5;

/** The requests in progress on this process. */
export class InFlight implements RunningRequests {
  readonly #running = new Roster<Running>();
  readonly #awaited = new Map<string, PromiseWithResolvers<void>>();
  readonly #draining = new AbortController();
  #empty: PromiseWithResolvers<void> | null = null;
  #isLeaving = false;

  /** Whether this process is about to drain: requests may start, and no more of them should be sent to it. */
  get isLeaving(): boolean {
    return this.#isLeaving;
  }

  leave(): void {
    this.#isLeaving = true;
  }

  /** False once draining has begun: nothing new may start. */
  get accepting(): boolean {
    return !this.draining.aborted;
  }

  /** Raised when draining begins. */
  get draining(): AbortSignal {
    return this.#draining.signal;
  }

  /** Adds a request; the returned function removes it. */
  add(request: Running): () => void {
    const position = this.#running.add(request);
    return () => {
      if (!this.#running.remove(position)) return;
      this.#awaited.get(request.requestId)?.resolve();
      this.#awaited.delete(request.requestId);
      if (this.#running.size === 0) this.#empty?.resolve();
    };
  }

  /** All requests, including those that wait for a slot. */
  all(): readonly Running[] {
    return this.#running.all();
  }

  has(requestId: string): boolean {
    return this.#find(requestId) !== undefined;
  }

  /** Resolves when a request has ended. */
  async ended({ requestId }: Pick<Running, 'requestId'>): Promise<void> {
    if (!this.has(requestId)) return;
    const waiting = this.#awaited.get(requestId) ?? Promise.withResolvers<void>();
    this.#awaited.set(requestId, waiting);
    await waiting.promise;
  }

  async list(): Promise<readonly RunningRequest[]> {
    return this.#views().filter(({ keyId }) => keyId !== null);
  }

  async count(keyIds: readonly string[]): Promise<ReadonlyMap<string, number>> {
    return countSlots(this.#views(), keyIds);
  }

  async cancel(requestId: string, keyId?: string): Promise<boolean> {
    const found = this.#find(requestId);
    if (found === undefined || (keyId !== undefined && found.view().keyId !== keyId)) return false;
    found.interrupt('cancelled');
    return true;
  }

  /** Stops accepting; resolves when no request is left. */
  async drained(): Promise<void> {
    this.#draining.abort();
    if (this.#running.size === 0) return;
    this.#empty ??= Promise.withResolvers<void>();
    await this.#empty.promise;
  }

  /** The requests that go on although they were told to end, as one whose body does not arrive: the first of them by name. */
  unended(): { readonly count: number; readonly named: string } {
    const named = this.#views().map(({ requestId, protocol, model, upstream, firstTextMs }) => {
      const known = [protocol, model, upstream, firstTextMs === null ? null : 'has text'];
      return `${requestId} (${known.filter((word) => word !== null).join(', ')})`;
    });
    return { count: named.length, named: named.slice(0, maxNamed).join('; ') };
  }

  /** Stops every running request. */
  interruptAll(reason: Interruption): void {
    for (const request of this.#running.all()) request.interrupt(reason);
  }

  #find(requestId: string): Running | undefined {
    return this.#running.all().find((request) => request.requestId === requestId);
  }

  #views(): readonly RunningRequest[] {
    return this.#running.all().map((request) => request.view());
  }
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

/** The refusal of a process that takes no more requests. */
export function draining(): Refusal {
  return refuse('draining', 'This server is shutting down. Try again: another instance will answer.', {
    retryAfterMs: 1_000,
  });
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

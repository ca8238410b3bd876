import type { RequestKind } from '../domain/consumption.ts';
import type { Interruption } from '../domain/interruption.ts';

/** What the registry knows of a running request. */
export interface Running {
  readonly requestId: string;
  readonly protocol: RequestKind;
  /** Milliseconds since 1970. */
  readonly arrivedAt: number;
  readonly interruption: AbortController;
  readonly notes: {
    readonly key: { readonly id: string } | null;
    /** What its key's limits said; `null` while it waits for a slot. */
    readonly standing: { readonly verdict: string } | null;
    readonly model: { readonly id: string } | null;
    /** What was asked; `null` while it waits for a slot. */
    readonly request: object | null;
    readonly stream: boolean;
  };
}

/** The requests in progress on this process. */
export interface InFlight {
  /** False once draining has begun: nothing new may start. */
  readonly accepting: boolean;
  /** Raised when draining begins. */
  readonly draining: AbortSignal;
  add(running: Running): void;
  remove(running: Running): void;
  /** All of them, those included that wait to be let in. */
  all(): readonly Running[];
  /** Those that have been let in, in the order of their arrival. */
  list(): readonly Running[];
  has(requestId: string): boolean;
  /** Resolves when a request runs no more. */
  ended(running: Running): Promise<void>;
  /** How many of a key have one of its slots; those that wait for one don't count. */
  count(keyId: string): number;
  /** Stops one request; false when none runs under this id, or not with this key. */
  cancel(requestId: string, keyId?: string): boolean;
  /** Stops accepting; resolves when nothing runs any more. */
  drained(): Promise<void>;
  /** Stops all that runs. */
  interruptAll(reason: Interruption): void;
}

export function createInFlight(): InFlight {
  const running = new Map<string, Running>();
  const awaited = new Map<string, PromiseWithResolvers<void>>();
  const draining = new AbortController();
  let empty: PromiseWithResolvers<void> | null = null;
  return {
    get accepting() {
      return !draining.signal.aborted;
    },
    draining: draining.signal,
    add: (request) => void running.set(request.requestId, request),
    remove(request) {
      running.delete(request.requestId);
      awaited.get(request.requestId)?.resolve();
      awaited.delete(request.requestId);
      if (running.size === 0) empty?.resolve();
    },
    list: () => [...running.values()].filter(({ notes }) => notes.key !== null),
    all: () => [...running.values()],
    has: (requestId) => running.has(requestId),
    async ended({ requestId }) {
      if (!running.has(requestId)) return;
      const waiting = awaited.get(requestId) ?? Promise.withResolvers<void>();
      awaited.set(requestId, waiting);
      await waiting.promise;
    },
    count: (keyId) =>
      [...running.values()].filter(
        ({ notes }) => notes.key?.id === keyId && notes.standing?.verdict === 'granted',
      ).length,
    cancel(requestId, keyId) {
      const found = running.get(requestId);
      if (found === undefined || (keyId !== undefined && found.notes.key?.id !== keyId)) return false;
      found.interruption.abort('cancelled' satisfies Interruption);
      return true;
    },
    async drained() {
      draining.abort();
      if (running.size === 0) return;
      empty ??= Promise.withResolvers<void>();
      await empty.promise;
    },
    interruptAll(reason) {
      for (const { interruption } of running.values()) interruption.abort(reason);
    },
  };
}

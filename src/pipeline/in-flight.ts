import type { Interruption } from '../domain/ports.ts';

/** What the registry knows of a running request. */
interface Running {
  readonly requestId: string;
  readonly interruption: AbortController;
}

/** The requests in progress on this process. */
export interface InFlight {
  /** False once draining has begun: nothing new may start. */
  readonly accepting: boolean;
  add(running: Running): void;
  remove(running: Running): void;
  /** Stops accepting; resolves when nothing runs any more. */
  drained(): Promise<void>;
  /** Stops all that runs. */
  interruptAll(reason: Interruption): void;
}

export function createInFlight(): InFlight {
  const running = new Map<string, Running>();
  let accepting = true;
  let empty: PromiseWithResolvers<void> | null = null;
  return {
    get accepting() {
      return accepting;
    },
    add: (request) => void running.set(request.requestId, request),
    remove(request) {
      running.delete(request.requestId);
      if (running.size === 0) empty?.resolve();
    },
    async drained() {
      accepting = false;
      if (running.size === 0) return;
      empty ??= Promise.withResolvers<void>();
      await empty.promise;
    },
    interruptAll(reason) {
      for (const { interruption } of running.values()) interruption.abort(reason);
    },
  };
}

import type { Upstreams } from '../domain/ports/upstreams.ts';

/** A client of one upstream. */
export interface Upstream extends Upstreams {
  /** Closes its connections; calls that still run break. */
  close(): Promise<void>;
}

/** Sends every call to the client of the upstream that it names. */
export function createUpstreams(upstreams: ReadonlyMap<string, Upstream>): Upstream {
  return {
    call(call, signal) {
      const upstream = upstreams.get(call.upstream);
      if (upstream === undefined) throw new Error(`no upstream is named ${call.upstream}`);
      return upstream.call(call, signal);
    },
    async close() {
      await Promise.all([...upstreams.values()].map((upstream) => upstream.close()));
    },
  };
}

import type { UpstreamFault } from './upstreams.ts';

/** How requests to an upstream without TLS are sent to a proxy, which reads them: with a whole address, and for itself. */
export interface Forwarding {
  /** What comes before the path of every request: the upstream's scheme, host and port. */
  readonly origin: string;
  /** The headers that the proxy reads and removes. */
  readonly headers: Readonly<Record<string, string>>;
  /** The fault of an answer with a status by which only a proxy refuses; `null` for an answer of the upstream. */
  readonly faultOf: (status: number) => UpstreamFault | null;
}

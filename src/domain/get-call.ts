import type { UpstreamCall } from './ports/upstreams.ts';

/** A call of the gateway itself, such as a probe or a list of models: a GET that must be answered within `limitMs`. */
export function getCall(upstream: string, path: string, limitMs: number): UpstreamCall {
  return { upstream, method: 'GET', path, body: null, stream: false, leftMs: limitMs, fresh: false };
}

import type { Failure } from '../../protocol/text.ts';

/**
 * How far a failure reaches:
 * - `connection`: the whole upstream, and no request is its cause: no connection, or credentials that are not accepted;
 * - `upstream`: the whole upstream, though a request may be its cause;
 * - `model`: the model at that upstream.
 */
export type Reach = 'connection' | 'upstream' | 'model';

/** How far the failure of an attempt at a model reaches, which goes by the model's name at the upstream. */
export function reachOf(
  { kind, upstreamError }: Pick<Failure, 'kind' | 'upstreamError'>,
  model: string,
): Reach {
  if (kind === 'unreachable') return 'connection';
  if (kind !== 'auth' && kind !== 'unavailable') return 'model';
  const { status = null, code, message } = upstreamError ?? {};
  // A key or an account that is not accepted serves no model. A 403 may be a firewall's answer to what one key asks.
  if (status === 401 || status === 402) return 'connection';
  if (`${code ?? ''} ${message ?? ''}`.includes(model)) return 'model';
  return kind === 'auth' && status !== 403 ? 'connection' : 'upstream';
}

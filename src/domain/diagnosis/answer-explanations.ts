import type { Failure, FailureKind } from '../../protocol/text.ts';
import type { Diagnosis } from './call-target.ts';

/** What to do about an answer that ends or breaks off too early. */
export const lookAtProxies = 'Check the log of the server, and the timeouts of the proxies before it.';

/** Explanations by the kind of a failure, and by its detail, which may be empty. */
const rows: Partial<Readonly<Record<FailureKind, (detail: string) => Diagnosis>>> = {
  unfinished: () => ({
    cause: 'the answer has an end marker, but no finish reason',
    advice: 'Set finishReason: optional, if the server never gives a finish reason.',
  }),
  truncated: (detail) => ({
    cause: detail === '' ? 'the answer ends without a finish reason and without an end marker' : detail,
    advice: lookAtProxies,
  }),
  empty: () => ({
    cause: 'the answer ends before any text, without an end marker',
    advice: lookAtProxies,
  }),
  invalid: (detail) => ({
    cause: `the upstream sent ${detail}`,
    advice: 'Report it to the makers of the server: the gateway ends such an answer as upstream_invalid.',
  }),
};

/**
 * Explains an answer with a good status that is cut off or breaks its protocol: the cause without its call, and the advice.
 * `null` for every other failure.
 */
export function explainAnswer({ kind, detail }: Pick<Failure, 'kind' | 'detail'>): Diagnosis | null {
  return rows[kind]?.(detail) ?? null;
}

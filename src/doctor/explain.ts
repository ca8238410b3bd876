import type { DiagnosedCall } from '../domain/diagnosis/call-target.ts';
import { diagnose } from '../domain/diagnosis/diagnose.ts';
import type { FailedCall } from '../domain/diagnosis/diagnose.ts';
import type { Failure, FailureKind } from '../protocol/text.ts';
import type { DoctorPorts, Target } from './target.ts';
import { fault } from './report.ts';
import type { Check } from './report.ts';

/**
 * The check of a call that got no answer, or an answer with an error status: its cause and what to do. `failed` is the
 * kind of failure that the answer's words show.
 */
export function failedCall(
  id: string,
  { failed, ...call }: Pick<DiagnosedCall, 'method' | 'path'> & { readonly failed?: FailureKind },
  result: FailedCall,
  { source }: Target,
  { callMs }: DoctorPorts,
): Check {
  const { cause, advice } = diagnose(
    { ...call, target: source.target, limitMs: Math.min(callMs, source.totalMs) },
    result,
    failed,
  );
  return fault(id, cause, advice);
}

/** What the upstream itself said about a failure, after a colon; empty if that is nothing. */
export function wordsOf({ upstreamError }: Failure): string {
  const said = [upstreamError?.code ?? '', upstreamError?.message ?? ''].filter((text) => text !== '');
  return said.length === 0 ? '' : `: ${said.join(', ')}`;
}

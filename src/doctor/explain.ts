import { diagnose } from '../domain/diagnosis/diagnose.ts';
import type { FailedCall } from '../domain/diagnosis/diagnose.ts';
import { fault } from './report.ts';
import type { Check } from './report.ts';
import type { DoctorPorts, Target } from './target.ts';

/** The check of a call that got no answer, or an answer with an error status: its cause and what to do. */
export function failedCall(
  id: string,
  call: { readonly method: 'GET' | 'POST'; readonly path: string },
  result: FailedCall,
  { source }: Target,
  { callMs }: DoctorPorts,
): Check {
  const { cause, advice } = diagnose(
    { ...call, target: source.target, limitMs: Math.min(callMs, source.totalMs) },
    result,
  );
  return fault(id, cause, advice);
}

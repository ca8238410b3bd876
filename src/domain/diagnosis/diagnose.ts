import type { FailureKind } from '../../protocol/text.ts';
import { addressOf } from './call-target.ts';
import type { DiagnosedCall, Diagnosis } from './call-target.ts';
import { explainFault } from './fault-explanations.ts';
import type { UpstreamAnswer, UpstreamFault } from '../ports/upstreams.ts';
import { explainStatus } from './status-explanations.ts';

/** How a call went wrong: a fault, an error status, or a status 200 with something else than what was asked for. */
export type FailedCall = UpstreamFault | Pick<UpstreamAnswer, 'kind' | 'status' | 'contentType'>;

/**
 * Names the cause of a call's failure with its address, and what to do. `kind` is the kind of failure that an answer's words
 * show, if they were read: a status may mean several.
 */
export function diagnose(call: DiagnosedCall, result: FailedCall, kind?: FailureKind): Diagnosis {
  const { cause, advice } =
    result.kind === 'fault' ? explainFault(result, call) : explainStatus(result, call, kind);
  return { cause: `${call.method} ${addressOf(call.target, call.path)}: ${cause}`, advice };
}

/** Both sentences of a diagnosis in one line. */
export function sentencesOf({ cause, advice }: Diagnosis): string {
  return `${cause}. ${advice}`;
}

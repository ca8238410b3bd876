import type { Failure, FailureKind } from '../../protocol/text.ts';
import { explainAnswer, explainStatus } from './status-explanations.ts';
import { addressOf } from './call-target.ts';
import type { DiagnosedCall, Diagnosis } from './call-target.ts';
import { proxyHint } from './proxy-explanations.ts';
import { explainFault } from './fault-explanations.ts';
import type { UpstreamAnswer, UpstreamFault } from '../ports/upstreams.ts';

/** How a call went wrong: a fault, an error status, or a status 200 with something else than what was asked for. */
export type FailedCall = UpstreamFault | Pick<UpstreamAnswer, 'kind' | 'status' | 'contentType'>;

/**
 * Names the cause of a call's failure with its address, and what to do. `kind` is the kind of failure that an answer's words
 * show, if they were read: a status may mean several.
 */
export function diagnose(call: DiagnosedCall, result: FailedCall, kind?: FailureKind): Diagnosis {
  const { cause, advice } =
    result.kind === 'fault' ? explainFault(result, call) : explainStatus(result, call, kind);
  const hint = result.kind === 'fault' ? '' : proxyHint(call.target);
  return { cause: `${startOf(call)}: ${cause}`, advice: advice + hint };
}

/**
 * Names the cause of a failure that an answer with a good status showed, and what to do; `null` if the failure's kind says
 * it all.
 */
export function diagnoseAnswer(
  call: DiagnosedCall,
  { status, contentType }: Pick<UpstreamAnswer, 'status' | 'contentType'>,
  failure: Pick<Failure, 'kind' | 'detail'>,
): Diagnosis | null {
  if (failure.kind === 'invalid' && isOther(contentType))
    return diagnose(call, { kind: 'answer', status, contentType });
  const explained = explainAnswer(failure);
  return explained === null ? null : { ...explained, cause: `${startOf(call)}: ${explained.cause}` };
}

/** Whether a content type is neither that of an event stream nor that of JSON. */
function isOther(contentType: string): boolean {
  return contentType !== '' && !/^(text\/event-stream|application\/([\w.-]+\+)?json\b)/.test(contentType);
}

/** The method and the address of a call, with which its cause begins. */
function startOf({ method, target, path }: DiagnosedCall): string {
  return `${method} ${addressOf(target, path)}`;
}

/** Both sentences of a diagnosis in one line. */
export function sentencesOf({ cause, advice }: Diagnosis): string {
  return `${cause}. ${advice}`;
}

/** A line of `sentencesOf` taken apart; other words are a cause without advice. */
export function readSentences(line: string | null): { readonly [Part in keyof Diagnosis]: string | null } {
  const end = line?.indexOf('. ') ?? -1;
  if (line === null || end === -1) return { cause: line, advice: null };
  return { cause: line.slice(0, end), advice: line.slice(end + 2) };
}

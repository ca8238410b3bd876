import { ask } from './ask.ts';
import type { Asked, Observation, Question, ReadAnswer, RefusedAnswer, Unanswered } from './ask.ts';
import { failedCall } from './explain.ts';
import { judgeAnswer } from './judge-answer.ts';
import { otherSettings } from './other-settings.ts';
import { fault } from './report.ts';
import type { Check } from './report.ts';
import type { DoctorPorts, Target } from './target.ts';
import { wordsOf } from './words.ts';

/** The result of one question. */
export interface CheckedAnswer {
  readonly checks: readonly Check[];
  /** The answer; `null` if the upstream refused the question or was not reached. */
  readonly read: ReadAnswer | null;
  /** How to ask from here on: with a setting that was found to help. */
  readonly asked: Asked;
  /** The refusal of the question as the config has it; `null` without one. */
  readonly refused: RefusedAnswer | null;
}

/** Asks a question and judges the answer. A refused one is asked again with other settings that may help. */
export async function checkAnswer(
  id: string,
  question: Question,
  asked: Asked,
  target: Target,
  ports: DoctorPorts,
): Promise<CheckedAnswer> {
  const first = await ask(question, asked.source, ports);
  const checks = judgeObservation(id, first, asked, target, ports);
  if (first.kind === 'read') return { checks, read: first, asked, refused: null };
  if (first.kind === 'unanswered') return { checks, read: null, asked, refused: null };
  for (const { line, asked: other } of otherSettings(first, asked, question.stream)) {
    const second = await ask(question, other.source, ports);
    if (second.kind !== 'read' || second.ending.kind !== 'finished') continue;
    const changed = fault(
      id,
      `refused with status ${first.status}; answered with ${line}`,
      `Set ${line} for this upstream in the config.`,
      first.totalMs,
    );
    const [, ...rules] = judgeAnswer(id, second, other);
    return { checks: [changed, ...rules], read: second, asked: other, refused: first };
  }
  return { checks, read: null, asked, refused: first };
}

/** Judges what came of a question: an answer by its rules, a refusal or a fault by its cause. */
export function judgeObservation(
  id: string,
  result: Observation,
  asked: Asked,
  target: Target,
  ports: DoctorPorts,
): readonly Check[] {
  return result.kind === 'read' ? judgeAnswer(id, result, asked) : [unanswered(id, result, target, ports)];
}

function unanswered(
  id: string,
  result: Unanswered | RefusedAnswer,
  target: Target,
  ports: DoctorPorts,
): Check {
  const call = { method: 'POST', path: result.path } as const;
  const { totalMs: ms } = result;
  if (result.kind === 'unanswered') return { ...failedCall(id, call, result.fault, target, ports), ms };
  const { status, contentType, failure } = result;
  const failed = { ...call, failed: failure.kind };
  const check = failedCall(id, failed, { kind: 'answer', status, contentType }, target, ports);
  return { ...check, detail: check.detail + wordsOf(failure), ms };
}

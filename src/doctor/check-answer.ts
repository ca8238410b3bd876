import { dialects } from '../protocol/upstream/dialects.ts';
import { ask } from './ask.ts';
import type { Asked, Observation, Question, ReadAnswer, RefusedAnswer, Unanswered } from './ask.ts';
import { failedCall, wordsOf } from './explain.ts';
import { fault } from './report.ts';
import type { Check } from './report.ts';
import { judgeAnswer } from './judge-answer.ts';
import type { DoctorPorts, Target } from './target.ts';

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

/** Another way to ask, with which an upstream may answer what it refused. */
interface OtherSetting {
  /** The setting, as it is written in a config. */
  readonly line: string;
  readonly asked: Asked;
}

/** Statuses that mean: this path is not served. */
export const noSuchPath: ReadonlySet<number> = new Set([404, 405, 501]);

/** The settings that may help with a refusal, the likeliest first. */
function otherSettings(
  { failure: { kind }, status }: RefusedAnswer,
  { dialect, source, hasList }: Asked,
  isStream: boolean,
): readonly OtherSetting[] {
  const { quirks } = source;
  const settings: OtherSetting[] = [];
  if (kind === 'rejected' && dialect === 'chat') {
    if (isStream && quirks.streamUsage === 'ask')
      settings.push(withQuirk('streamUsage: given', { streamUsage: 'given' }));
    const other = quirks.maxTokensField === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens';
    settings.push(withQuirk(`maxTokensField: ${other}`, { maxTokensField: other }));
  }
  if (noSuchPath.has(status) && (dialect === 'chat' || dialect === 'responses')) {
    const other = dialect === 'chat' ? 'responses' : 'chat';
    settings.push({
      line: `dialects: [${other}]`,
      asked: { dialect: other, source: { ...source, dialect: dialects[other] }, hasList },
    });
  }
  return settings;

  function withQuirk(line: string, quirk: Partial<typeof quirks>): OtherSetting {
    return { line, asked: { dialect, source: { ...source, quirks: { ...quirks, ...quirk } }, hasList } };
  }
}

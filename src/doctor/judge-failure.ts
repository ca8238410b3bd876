import { checkPath } from '../domain/diagnosis/status-explanations.ts';
import { explainCoding } from '../domain/diagnosis/coding-explanations.ts';
import { explainAnswer, lookAtProxies } from '../domain/diagnosis/answer-explanations.ts';
import type { Failure, FailureKind } from '../protocol/text.ts';
import type { Asked, ReadAnswer } from './ask.ts';
import { unknownFinishReason } from './inspect-chat.ts';
import { quote } from './quote.ts';
import { faultRule } from './rules.ts';
import type { BrokenRule } from './rules.ts';
import { wordsOf } from './words.ts';

/** The rule whose breach made an answer fail. */
export function failureRule(read: ReadAnswer, failed: Failure, asked: Asked): BrokenRule {
  const { violations, contentType } = read;
  const { kind } = failed;
  if (contentType.includes('html'))
    return faultRule('wrong_content_type', 'a web page instead of an answer', adviseOnWebPage(asked));
  const explained = explainAnswer(failed);
  if (explained !== null) return faultRule(ruleOf(failed, violations), explained.cause, explained.advice);
  const unknown = asked.dialect === 'chat' ? unknownFinishReason(read) : null;
  if (unknown !== null)
    return faultRule(
      'unknown_finish_reason',
      `the finish reason ${quote(unknown, asked.source)} is not in the gateway's table`,
      'Report it to textgate: the answer fails, because it may not be complete.',
    );
  const coding = explainCoding(failed.detail);
  if (coding !== null) return faultRule('undecodable', coding.cause, coding.advice);
  if (kind === 'broken')
    return faultRule('broken', 'the connection breaks in the middle of the answer', lookAtProxies);
  if (timeouts.has(kind))
    return faultRule('timeout', 'the answer does not end within the time of this test', lookAtLoad);
  return faultRule(
    'error_in_answer',
    `an error inside an answer with status 200${wordsOf(failed)}`,
    lookAtLog,
  );
}

/** A base URL that has the list of models has the right path. */
function adviseOnWebPage({ source: { target }, hasList }: Asked): string {
  return hasList ? pathSeemsRight : checkPath({ method: 'POST', target });
}

const pathSeemsRight =
  'The list of models is at this URL: check the name of the model, the log of the server and the proxies before it.';

/** The deadlines of the test itself. */
const timeouts: ReadonlySet<FailureKind> = new Set(['first_byte_timeout', 'idle_timeout', 'total_timeout']);

const lookAtLoad = 'Check the load of the server, or allow more time with --timeout.';
const lookAtLog = 'Check the log of the server: the gateway ends such an answer with an error, too.';

/** The rule that an answer broke which was cut off or invalid. */
function ruleOf({ kind }: Failure, violations: ReadAnswer['violations']): string {
  if (kind === 'unfinished') return 'missing_finish';
  if (kind === 'truncated' || kind === 'empty') return 'cut_off';
  return rulesOfInvalid.find((rule) => violations.has(rule)) ?? 'invalid';
}

const rulesOfInvalid = ['bad_json', 'oversized_event'] as const;

import { checkPath } from '../domain/diagnosis/status-explanations.ts';
import type { Failure, FailureKind } from '../protocol/text.ts';
import { createReader } from '../protocol/upstream/read-answer.ts';
import type { Asked, ReadAnswer } from './ask.ts';
import { unknownFinishReason } from './inspect-chat.ts';
import { quote } from './quote.ts';
import { faultRule } from './rules.ts';
import type { BrokenRule } from './rules.ts';
import { wordsOf } from './words.ts';

/** The rule whose breach made an answer fail. */
export function failureRule(read: ReadAnswer, failed: Failure, asked: Asked): BrokenRule {
  const { violations, contentType } = read;
  const { kind, detail } = failed;
  if (contentType.includes('html'))
    return faultRule('wrong_content_type', 'a web page instead of an answer', adviseOnWebPage(asked));
  if (violations.has('bad_json')) return faultRule('bad_json', detail, reportToServer);
  if (violations.has('oversized_event')) return faultRule('oversized_event', detail, reportToServer);
  if (kind === 'truncated') return cutOff(read, asked);
  if (kind === 'invalid') return faultRule('invalid', detail, reportToServer);
  const unknown = asked.dialect === 'chat' ? unknownFinishReason(read) : null;
  if (unknown !== null)
    return faultRule(
      'unknown_finish_reason',
      `the finish reason ${quote(unknown, asked.source)} is not in the gateway's table`,
      'Report it to textgate: the answer fails, because it may not be complete.',
    );
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

const reportToServer =
  'Report it to the makers of the server: the gateway ends such an answer as upstream_invalid.';
const lookAtProxies = 'Check the log of the server, and the timeouts of the proxies before it.';
const lookAtLoad = 'Check the load of the server, or allow more time with --timeout.';
const lookAtLog = 'Check the log of the server: the gateway ends such an answer with an error, too.';

/** A missing finish reason: the server's way if it marks the end all the same, else a cut-off answer. */
function cutOff(read: ReadAnswer, { source: { dialect } }: Asked): BrokenRule {
  const reader = createReader(dialect, { ...read.terms, finishReason: 'optional' });
  const endings = [reader.push(read.bytes), reader.end()].map(({ ending }) => ending);
  if (endings.some((ending) => ending?.kind === 'finished'))
    return faultRule(
      'missing_finish',
      'the answer has an end marker, but no finish reason',
      'Set finishReason: optional, if the server never gives a finish reason.',
    );
  return faultRule(
    'cut_off',
    'the answer ends without a finish reason and without an end marker',
    lookAtProxies,
  );
}

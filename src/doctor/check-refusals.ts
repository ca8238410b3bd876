import { isPlainObject, parseJson } from '../shared/parse-json.ts';
import type { FailureKind, Failure } from '../protocol/text.ts';
import { ask } from './ask.ts';
import type { Asked, ReadAnswer, RefusedAnswer } from './ask.ts';
import { fault, ok, skipped, warning } from './report.ts';
import type { Check } from './report.ts';
import { isDemo } from './target.ts';
import type { DoctorPorts, Target } from './target.ts';
import { unknownFinishReason } from './inspect-chat.ts';

/** Statuses that mean: the key or its account is not accepted. */
export const keyStatuses: ReadonlySet<number> = new Set([401, 402, 403]);

/** Whether the key of a question that was answered is accepted: an answer may hold an error that says otherwise. */
export function checkKey({ ending }: ReadAnswer, { hasApiKey, source: { target } }: Target): Check {
  if (ending.kind === 'failed' && ending.failure.kind === 'auth')
    return fault(
      'key',
      'the answer holds an error about the key or its account',
      `Correct ${target.names.apiKey}.`,
    );
  if (hasApiKey) return ok('key', 'accepted');
  const mayHoldKey = target.hasKey || target.queryNames.length > 0;
  const other = mayHoldKey ? ' beside the headers and the query of the config' : '';
  return ok('key', `none is set, and none is required${other}`);
}

/** Asks with a key that does not exist, if that is wanted: a server that answers it has no protection. */
export async function checkWrongKey(
  model: string,
  { source }: Asked,
  target: Target,
  ports: DoctorPorts,
): Promise<readonly Check[]> {
  const { upstreamsWithWrongKey: upstreams } = ports;
  if (upstreams === null) return [];
  const id = 'wrong_key';
  if (isDemo(target)) return [skipped(id, 'the built-in demo has no keys')];
  // A key in a header of the config would be sent beside the wrong one.
  if (!target.hasApiKey) return [skipped(id, `${source.target.names.apiKey} is not set`)];
  const question = { model, text: 'Say hi.', stream: false, maxOutputTokens: 16 };
  const answer = await ask(question, source, { ...ports, upstreams });
  if (answer.kind === 'unanswered') return [skipped(id, 'no answer')];
  const { status, totalMs: ms } = answer;
  const advice = 'Nothing to change: but clients of this server take a wrong key for another fault.';
  if (answer.kind === 'refused')
    return keyStatuses.has(status)
      ? [ok(id, `refused with status ${status}`, ms)]
      : [warning(id, `a wrong key is refused with status ${status}, not 401`, advice, ms)];
  if (isAnswered(answer))
    return [fault(id, 'a wrong key is accepted', 'Set up the keys of the server: it answers any key.', ms)];
  return errorInside(answer) === null
    ? [skipped(id, 'the answer fails without an error of the server')]
    : [warning(id, `a wrong key is refused with an error under status ${status}, not 401`, advice, ms)];
}

/** A model that no server has. */
const unknownModel = 'textgate-doctor-unknown-model';

/** The statuses with which providers refuse an unknown model. */
const usualStatuses = new Set([400, 403, 404, 422]);

/** Statuses that say nothing of the model. */
const busyStatuses = new Set([408, 429, 503, 504, 529]);

/** The same for errors inside answers with a good status. */
const usualKinds: ReadonlySet<FailureKind> = new Set(['model_unknown', 'rejected']);
const busyKinds: ReadonlySet<FailureKind> = new Set(['rate_limited', 'overloaded', 'timed_out_itself']);

const looksFailing = 'Check the names of models in the config: a wrong one looks like a failing server.';

/** Checks that a model that does not exist is refused, with an error in the usual form. */
export async function checkUnknownModel(id: string, asked: Asked, ports: DoctorPorts): Promise<Check> {
  const question = { model: unknownModel, text: 'Say hi.', stream: false, maxOutputTokens: 16 };
  const answer = await ask(question, asked.source, ports);
  if (answer.kind === 'unanswered') return skipped(id, 'no answer');
  if (answer.kind === 'read') return judgeRead(id, answer);
  const { status, totalMs } = answer;
  if (busyStatuses.has(status)) return skipped(id, `the upstream is busy (status ${status})`);
  if (!usualStatuses.has(status))
    return warning(
      id,
      `a model that does not exist is refused with status ${status}, not 404`,
      looksFailing,
      totalMs,
    );
  if (asked.dialect === 'chat' && !hasUsualError(answer))
    return warning(
      id,
      `status ${status}, but the body is not {"error": {"message": …}}`,
      'Nothing to change: the gateway writes errors of its own.',
      totalMs,
    );
  return ok(id, `refused with status ${status}`, totalMs);
}

/** Judges an answer with a good status, which may hold an error. */
function judgeRead(id: string, answer: ReadAnswer): Check {
  const { status, totalMs } = answer;
  if (isAnswered(answer))
    return warning(
      id,
      'a model that does not exist is answered for',
      'Check the names of models in the config: this server does not refuse a wrong one.',
      totalMs,
    );
  const error = errorInside(answer);
  if (error === null) return skipped(id, 'the answer fails without an error of the server');
  if (busyKinds.has(error.kind)) return skipped(id, `the upstream is busy (an error under status ${status})`);
  const detail = `refused with an error under status ${status}`;
  return usualKinds.has(error.kind)
    ? ok(id, detail, totalMs)
    : warning(id, `a model that does not exist is ${detail}, not 404`, looksFailing, totalMs);
}

function hasUsualError({ body }: RefusedAnswer): boolean {
  const parsed = parseJson(body);
  const error = isPlainObject(parsed) ? parsed['error'] : null;
  return isPlainObject(error) && typeof error['message'] === 'string';
}

/** Failures in which the upstream does not say what is wrong: it may have accepted the question. */
const wordlessKinds: ReadonlySet<FailureKind> = new Set([
  'unreachable',
  'unanswered',
  'stale',
  'broken',
  'undecodable',
  'cut_coding',
  'first_byte_timeout',
  'first_text_timeout',
  'idle_timeout',
  'total_timeout',
  'unread',
  'invalid',
  'truncated',
]);

/** The error that an answer with a good status holds in place of text; `null` without one. */
function errorInside(read: ReadAnswer): Failure | null {
  const { ending } = read;
  if (ending.kind === 'finished' || isAnswered(read) || unknownFinishReason(read) !== null) return null;
  return wordlessKinds.has(ending.failure.kind) ? null : ending.failure;
}

/** Whether a question was answered, be it in part. */
function isAnswered({ deltas, ending }: ReadAnswer): boolean {
  return ending.kind === 'finished' || deltas.length > 0;
}

import { isPlainObject, parseJson } from '../shared/parse-json.ts';
import type { FailureKind } from '../protocol/text.ts';
import { ask } from './ask.ts';
import type { Asked, ReadAnswer, RefusedAnswer } from './ask.ts';
import { errorInside, isAnswered } from './error-inside.ts';
import { ok, skipped, warning } from './report.ts';
import type { Check } from './report.ts';
import type { DoctorPorts } from './target.ts';

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

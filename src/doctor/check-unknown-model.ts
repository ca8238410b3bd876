import { isPlainObject, parseJson } from '../shared/parse-json.ts';
import { ask } from './ask.ts';
import type { Asked, RefusedAnswer } from './ask.ts';
import { ok, skipped, warning } from './report.ts';
import type { Check } from './report.ts';
import type { DoctorPorts } from './target.ts';

/** A model that no server has. */
const unknownModel = 'textgate-doctor-unknown-model';

/** The statuses with which providers refuse an unknown model. */
const usualStatuses = new Set([400, 403, 404, 422]);

/** Statuses that say nothing of the model. */
const busyStatuses = new Set([408, 429, 503, 504, 529]);

/** Checks that a model that does not exist is refused, with an error in the usual form. */
export async function checkUnknownModel(id: string, asked: Asked, ports: DoctorPorts): Promise<Check> {
  const question = { model: unknownModel, text: 'Say hi.', stream: false, maxOutputTokens: 16 };
  const answer = await ask(question, asked.source, ports);
  if (answer.kind === 'unanswered') return skipped(id, 'no answer');
  if (answer.kind === 'read')
    return warning(
      id,
      'a model that does not exist is answered for',
      'Check the names of models in the config: this server does not refuse a wrong one.',
      answer.totalMs,
    );
  const { status, totalMs } = answer;
  if (busyStatuses.has(status)) return skipped(id, `the upstream is busy (status ${status})`);
  if (!usualStatuses.has(status))
    return warning(
      id,
      `a model that does not exist is refused with status ${status}, not 404`,
      'Check the names of models in the config: a wrong one looks like a failing server.',
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

function hasUsualError({ body }: RefusedAnswer): boolean {
  const parsed = parseJson(body);
  const error = isPlainObject(parsed) ? parsed['error'] : null;
  return isPlainObject(error) && typeof error['message'] === 'string';
}

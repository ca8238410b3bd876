import { ask } from './ask.ts';
import type { Asked, ReadAnswer } from './ask.ts';
import { errorInside, isAnswered } from './error-inside.ts';
import { fault, ok, skipped, warning } from './report.ts';
import type { Check } from './report.ts';
import { isDemo } from './target.ts';
import type { DoctorPorts, Target } from './target.ts';

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

import { ask } from './ask.ts';
import type { Asked, ReadAnswer } from './ask.ts';
import { fault, ok, skipped, warning } from './report.ts';
import type { Check } from './report.ts';
import type { DoctorPorts, Target } from './target.ts';

/** Statuses that mean: the key or its account is not accepted. */
export const keyStatuses: ReadonlySet<number> = new Set([401, 402, 403]);

/** Whether the key of a question that was answered is accepted: an answer may hold an error that says otherwise. */
export function checkKey({ ending }: ReadAnswer, { source: { target } }: Target): Check {
  if (ending.kind === 'failed' && ending.failure.kind === 'auth')
    return fault(
      'key',
      'the answer holds an error about the key or its account',
      `Correct ${target.names.apiKey}.`,
    );
  return ok('key', target.hasKey ? 'accepted' : 'none is set, and none is required');
}

/** Asks with a key that does not exist, if that is wanted: a server that answers it has no protection. */
export async function checkWrongKey(
  model: string,
  { source }: Asked,
  ports: DoctorPorts,
): Promise<readonly Check[]> {
  const { upstreamsWithWrongKey: upstreams } = ports;
  if (upstreams === null) return [];
  const id = 'wrong_key';
  if (!source.target.hasKey) return [skipped(id, 'no key is set')];
  const question = { model, text: 'Say hi.', stream: false, maxOutputTokens: 16 };
  const answer = await ask(question, source, { ...ports, upstreams });
  if (answer.kind === 'unanswered') return [skipped(id, 'no answer')];
  const ms = answer.totalMs;
  if (answer.kind === 'read')
    return [fault(id, 'a wrong key is accepted', 'Set up the keys of the server: it answers any key.', ms)];
  if (keyStatuses.has(answer.status)) return [ok(id, `refused with status ${answer.status}`, ms)];
  const advice = 'Nothing to change: but clients of this server take a wrong key for another fault.';
  return [warning(id, `a wrong key is refused with status ${answer.status}, not 401`, advice, ms)];
}

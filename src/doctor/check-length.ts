import { count } from '../shared/count.ts';
import { ask } from './ask.ts';
import type { Asked, ReadAnswer } from './ask.ts';
import { fault, ok, skipped, warning } from './report.ts';
import type { Check } from './report.ts';
import type { DoctorPorts } from './target.ts';

/** A question whose answer is longer than its output cap, which is the smallest one of the Responses API, in tokens. */
const longText = 'Count from 1 to 100.';
const smallCap = 16;

/** Checks that an answer that was cut at its output cap says so: its finish reason must not be invented. */
export async function checkLength(
  id: string,
  model: string,
  asked: Asked,
  ports: DoctorPorts,
): Promise<Check> {
  const question = { model, text: longText, stream: false, maxOutputTokens: smallCap };
  const read = await ask(question, asked.source, ports);
  if (read.kind !== 'read' || read.ending.kind !== 'finished')
    return skipped(id, `no answer to a question with a cap of ${smallCap} tokens`);
  return judgeLength(id, read, asked);
}

function judgeLength(id: string, { ending, totalMs }: ReadAnswer, { dialect, source }: Asked): Check {
  if (ending.kind !== 'finished') return skipped(id, 'no answer');
  const { reason, rawReason, usage } = ending;
  if (reason === 'length')
    return ok(id, `cut at ${smallCap} tokens, and finish reason ${rawReason} says so`, totalMs);
  const output = usage?.outputTokens ?? null;
  if (output === null || output < smallCap)
    return ok(id, `the model ended before the cap of ${smallCap} tokens`, totalMs);
  if (output === smallCap)
    return fault(
      id,
      `cut at ${smallCap} tokens, but ${dialect === 'responses' ? 'its status is completed' : `the finish reason is ${rawReason}`}`,
      dialect === 'responses'
        ? 'Set dialects: [chat], if the server has it: clients take a cut-off answer for a complete one.'
        : 'Report it to the makers of the server: clients take a cut-off answer for a complete one.',
      totalMs,
    );
  const other = source.quirks.maxTokensField === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens';
  return warning(
    id,
    `${count(output, 'token')} for a cap of ${smallCap}`,
    dialect === 'chat'
      ? `Try maxTokensField: ${other} for this upstream: it does not keep to the cap of requests.`
      : 'Nothing to change: this upstream does not keep to the cap of requests.',
    totalMs,
  );
}

import { count } from '../shared/count.ts';
import type { Usage } from '../protocol/text.ts';
import { ask } from './ask.ts';
import type { Asked, Observation, ReadAnswer } from './ask.ts';
import { wordsOf } from './explain.ts';
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
  const { totalMs } = read;
  const { reason, rawReason, usage } = read.ending;
  const { dialect, source } = asked;
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

/** A question whose answer has the stop sequence in it, and goes on behind it. */
const stop = 'charlie';
const question = {
  text: 'Write this line and nothing else: alpha bravo charlie delta',
  stream: false,
  maxOutputTokens: 256,
  stop: [stop],
};

/** The statuses with which servers refuse a field. */
const refusing = new Set([400, 422]);

const advice =
  "Requests with 'stop' fail or run on at this upstream: give the models that need it another route.";

/** Checks that a stop sequence is taken, and that the answer ends before it; nothing where the dialect has none. */
export async function checkStop(
  id: string,
  model: string,
  asked: Asked,
  ports: DoctorPorts,
): Promise<readonly Check[]> {
  if (!asked.source.dialect.takesStop(question.stop)) return [];
  return [judgeStop(id, await ask({ model, ...question }, asked.source, ports))];
}

function judgeStop(id: string, answer: Observation): Check {
  if (answer.kind === 'unanswered') return skipped(id, 'no answer');
  if (answer.kind === 'refused') {
    const { status, failure, totalMs } = answer;
    return refusing.has(status)
      ? warning(
          id,
          `a question with a stop sequence is refused (status ${status})${wordsOf(failure)}`,
          advice,
          totalMs,
        )
      : skipped(id, `no answer to a question with a stop sequence (status ${status})`);
  }
  const { deltas, ending, totalMs } = answer;
  if (ending.kind !== 'finished') return skipped(id, 'no whole answer to a question with a stop sequence');
  const said = deltas.join('').toLowerCase();
  if (said.includes(stop)) return warning(id, 'the answer has the stop sequence in it', advice, totalMs);
  return ok(
    id,
    said.includes('bravo') ? 'the answer ends before it' : 'taken; the answer has no such text',
    totalMs,
  );
}

/** An answer with its form, whole or streamed. */
interface FormedAnswer {
  readonly form: 'whole' | 'streamed';
  readonly read: ReadAnswer;
}

const counted = 'Nothing to change: the gateway counts the tokens itself, and its records say counted.';

/** Checks whether finished answers report their tokens, and whether the counts can be true. */
export function checkUsage(
  id: string,
  { whole, stream }: { readonly whole: ReadAnswer | null; readonly stream: ReadAnswer | null },
  { dialect, source: { quirks } }: Asked,
): readonly Check[] {
  const answers = [
    ...(whole === null ? [] : [{ form: 'whole', read: whole } as const]),
    ...(stream === null ? [] : [{ form: 'streamed', read: stream } as const]),
  ].filter(({ read }) => read.ending.kind === 'finished');
  if (answers.length === 0) return [];
  const wrong = answers.find(({ read }) => read.implausible !== null);
  if (wrong !== undefined)
    return [warning(id, `${wrong.form}: can't be true: ${wrong.read.implausible}`, counted)];
  const missing = answers.filter(({ read }) => read.ending.usage === null);
  if (missing.length === 0) return [ok(id, answers.map(describeUsage).join('; '))];
  const isOnlyStream = missing.every(({ form }) => form === 'streamed');
  const canAsk = dialect === 'chat' && quirks.streamUsage === 'given';
  return [
    warning(
      id,
      missing.length === answers.length
        ? 'no answer reports its tokens'
        : `${missing.map(({ form }) => form).join(' and ')}: the tokens are not reported`,
      isOnlyStream && canAsk ? 'Set streamUsage: ask for this upstream in the config.' : counted,
    ),
  ];
}

/** The tokens of an answer that reports them. */
function describeUsage({ form, read }: FormedAnswer): string {
  const { inputTokens, outputTokens, reasoningTokens } = read.ending.usage as Usage;
  const thoughts = reasoningTokens === 0 ? '' : ` (${reasoningTokens} of them thoughts)`;
  return `${form}: ${inputTokens} in, ${outputTokens} out${thoughts}`;
}

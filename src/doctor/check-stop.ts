import { ask } from './ask.ts';
import type { Asked } from './ask.ts';
import { ok, skipped, warning } from './report.ts';
import type { Check } from './report.ts';
import type { DoctorPorts } from './target.ts';
import { wordsOf } from './words.ts';

/** A question whose answer has the stop sequence in it, and goes on behind it. */
const question = { text: 'Write this line and nothing else: alpha bravo charlie delta', cap: 256 } as const;
const stop = 'charlie';

/** The statuses with which servers refuse a field. */
const refusing = new Set([400, 422]);

const advice =
  "Requests with 'stop' fail or run on at this upstream: give the models that need it another route.";

/** Checks that a stop sequence is taken, and that the answer ends before it; `null` where the dialect has none. */
export async function checkStop(
  id: string,
  model: string,
  asked: Asked,
  ports: DoctorPorts,
): Promise<Check | null> {
  if (!asked.source.dialect.takesStop([stop])) return null;
  const { text, cap } = question;
  const answer = await ask(
    { model, text, stream: false, maxOutputTokens: cap, stop: [stop] },
    asked.source,
    ports,
  );
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

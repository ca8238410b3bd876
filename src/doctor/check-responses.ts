import { dialects } from '../protocol/upstream/dialects.ts';
import { ask } from './ask.ts';
import type { Asked, Observation } from './ask.ts';
import { judgeObservation } from './check-answers.ts';
import { checkLength } from './check-length.ts';
import { checkUsage } from './check-usage.ts';
import { isOfResponses } from './inspect-responses.ts';
import { skipped } from './report.ts';
import type { Check } from './report.ts';
import type { DoctorPorts, Target } from './target.ts';

/** Statuses that mean: there is no Responses API at this URL. */
const noResponses = new Set([404, 405, 501]);

/** Tests the Responses API beside another protocol, if the upstream has it. */
export async function checkResponses(
  { text, maxOutputTokens }: { readonly text: string; readonly maxOutputTokens: number },
  { model, hasList }: { readonly model: string; readonly hasList: boolean },
  target: Target,
  ports: DoctorPorts,
): Promise<readonly Check[]> {
  const source = { ...target.source, dialect: dialects.responses };
  const asked: Asked = { dialect: 'responses', source, hasList };
  const askIn = (stream: boolean): Promise<Observation> =>
    ask({ model, text, stream, maxOutputTokens }, asked.source, ports);
  const streamed = await askIn(true);
  const missing = whyMissing(streamed, target);
  if (missing !== null) return [skipped('responses.stream', missing)];
  const whole = await askIn(false);
  const read = {
    whole: whole.kind === 'read' ? whole : null,
    stream: streamed.kind === 'read' ? streamed : null,
  };
  return [
    ...judgeObservation('responses.whole', whole, asked, target, ports),
    ...judgeObservation('responses.stream', streamed, asked, target, ports),
    ...checkUsage('responses.usage', read, asked),
    ...(read.whole === null ? [] : [await checkLength('responses.length', model, asked, ports)]),
  ];
}

/**
 * Why an upstream does not seem to have the Responses API; `null` if it seems to. Servers without it answer unknown
 * paths in many ways; one whose config names it has it, unless it says that the path is not served.
 */
function whyMissing(answer: Observation, { responses }: Target): string | null {
  const isNamed = responses === 'named';
  switch (answer.kind) {
    case 'unanswered':
      return isNamed ? null : 'no Responses API was found at this URL (no answer)';
    case 'refused':
      if (noResponses.has(answer.status))
        return `there is no Responses API at this URL (status ${answer.status})`;
      return isNamed ? null : `no Responses API was found at this URL (status ${answer.status})`;
    case 'read':
      return isNamed || isOfResponses(answer.bytes)
        ? null
        : `no Responses API was found at this URL (status ${answer.status} with another body)`;
  }
}

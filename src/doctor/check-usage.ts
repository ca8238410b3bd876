import type { Usage } from '../protocol/text.ts';
import type { Asked, ReadAnswer } from './ask.ts';
import { ok, warning } from './report.ts';
import type { Check } from './report.ts';
import { describeUsage } from './words.ts';

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
  if (missing.length === 0) return [ok(id, answers.map(describeOne).join('; '))];
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

function describeOne({ form, read }: FormedAnswer): string {
  return `${form}: ${describeUsage(read.ending.usage as Usage)}`;
}

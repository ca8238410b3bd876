import { count } from '../../shared/count.ts';
import { nearestName } from '../../shared/nearest-name.ts';
import type { ReconciledLine } from './compare.ts';
import { dayLinesOf, sum } from './findings.ts';
import type { Findings } from './findings.ts';

/** What the figures don't have, and what may be wrong with the comparison itself. */
export function notesOf({ found, ours, theirs, upstream, isOver }: Findings): readonly string[] {
  const days = dayLinesOf(found);
  const [withoutUsage, refused] = [
    sum(days.map((line) => line.withoutUsage)),
    sum(days.map((line) => line.refused)),
  ];
  const notes: readonly (readonly [applies: boolean, note: string])[] = [
    [
      withoutUsage > 0,
      `${count(withoutUsage, 'attempt')} at ${upstream} without usage (broken off, timed out or not counted): the provider may have charged for it, and the records have no tokens of it`,
    ],
    [
      refused > 0,
      `${count(refused, 'attempt')} at ${upstream} got a refusal or an error instead of an answer`,
    ],
    [
      ours.lost > 0,
      `lost with their process, so that their use is not known: ${count(ours.lost, 'request')} to ${upstream}`,
    ],
    [ours.running > 0, `still running: ${count(ours.running, 'request')} to ${upstream}`],
    [
      ours.passedThrough > 0,
      `passed through, so that their use is not known: ${count(ours.passedThrough, 'request')} to ${upstream}`,
    ],
    [
      found.outside > 0,
      `outside of the days: ${count(found.outside, 'pair')} of a day and a model in the export`,
    ],
    [theirs.isCut, 'the last page of the export says that there are more pages (has_more)'],
    [!isOver, 'the last day is not over'],
    [
      ours.oldest !== null && startsLate(ours.oldest, days),
      `the oldest record was begun at ${ours.oldest}: were older ones removed (records.keep)?`,
    ],
    [
      ours.records > 0 && !ours.upstreams.includes(upstream),
      `no record of these days has the upstream ${upstream}${meant(upstream, ours.upstreams)}`,
    ],
    ...namesApart(days).map((note) => [true, note] as const),
  ];
  return notes.flatMap(([applies, note]) => (applies ? [note] : []));
}

function meant(wrong: string, known: readonly string[]): string {
  const nearest = nearestName(wrong, known);
  return nearest === null ? '' : `; did you mean ${nearest}?`;
}

/** Whether the export has something from before the oldest record. */
function startsLate(oldest: string, days: readonly ReconciledLine[]): boolean {
  return days.some(({ side, day }) => side === 'theirs' && (day ?? '') < oldest.slice(0, 10));
}

/** How many models are suggested for. */
const maxSuggestions = 5;

/** The models that only one side has, with those that may be the same: providers add the day of a version to a name. */
function namesApart(days: readonly ReconciledLine[]): readonly string[] {
  const modelsOf = (sides: readonly ReconciledLine['side'][]): readonly string[] => [
    ...new Set(days.filter(({ side }) => sides.includes(side)).map(({ model }) => model)),
  ];
  const [inRecords, inExport] = [modelsOf(['ours', 'both']), modelsOf(['theirs', 'both'])];
  const onlyRecords = inRecords.filter((model) => !inExport.includes(model));
  return inExport
    .filter((model) => !inRecords.includes(model))
    .slice(0, maxSuggestions)
    .map((model) => {
      const same = onlyRecords.find((name) => model.startsWith(name)) ?? nearestName(model, onlyRecords);
      const advice = same === null ? '' : `; if it is ${same}: --map ${model}=${same}`;
      return `the records have no model ${model}${advice}`;
    });
}

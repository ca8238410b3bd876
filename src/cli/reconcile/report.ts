import { escapeControlCharacters } from '../../shared/control-characters.ts';
import { count } from '../../shared/count.ts';
import { formatUsd } from '../../shared/money.ts';
import { nearestName } from '../../shared/nearest-name.ts';
import { didYouMean } from '../did-you-mean.ts';
import { maxColumns, wrap, writeTable } from '../output.ts';
import type { ReconciledLine, Reconciliation } from './compare.ts';
import type { DayRange, OurUsage } from './our-usage.ts';
import type { TheirUsage } from './read-export.ts';
import { dayBefore } from './calendar.ts';
import type { Quantity } from './quantities.ts';

/** All that a report says. */
export interface Findings {
  readonly upstream: string;
  readonly range: DayRange;
  /** A share of 1. */
  readonly tolerance: number;
  readonly theirs: TheirUsage;
  readonly ours: OurUsage;
  readonly found: Reconciliation;
  /** Whether the last day is over: the provider and the records may go on with it. */
  readonly isOver: boolean;
}

/** The lines of single days. */
function dayLinesOf({ lines }: Reconciliation): readonly ReconciledLine[] {
  return lines.filter(({ day }) => day !== null);
}

/** The lines of all days of a model. */
function wholeLinesOf({ lines }: Reconciliation): readonly ReconciledLine[] {
  return lines.filter(({ day }) => day === null);
}

/** Whether both sides agree everywhere. */
export function agrees({ found }: Findings): boolean {
  return found.lines.every((line) => line.agrees);
}

/** Adds up numbers. */
function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

const names: Readonly<Record<Quantity, string>> = {
  requests: 'requests',
  input: 'input tokens',
  cached: 'cached input',
  cacheWrite: 'cache writes',
  output: 'output tokens',
};

const jsonNames: Readonly<Record<Quantity, string>> = {
  requests: 'requests',
  input: 'input_tokens',
  cached: 'cached_input_tokens',
  cacheWrite: 'cache_write_tokens',
  output: 'output_tokens',
};

/** How many differences the table has: the rest is in JSON. */
const maxTableRows = 200;

/** The report for people: what differs, the sums, and what can't be compared. */
export function writeReport(findings: Findings): string {
  const { found, upstream, tolerance, theirs, range } = findings;
  const days = dayLinesOf(found);
  const differing = days.filter((line) => !line.agrees).length;
  const rows = differenceRows(found);
  const share = `${Number((tolerance * 100).toFixed(6))}%`;
  const pairs = `${count(days.length, 'pair')} of a day and a model, ${range.from} to ${dayBefore(range.to)}`;
  const head =
    rows.length === 0
      ? `the ${theirs.format} export and the records of ${upstream} agree within ${share}: ${pairs}`
      : `the ${theirs.format} export and the records of ${upstream} differ by more than ${share}: ${differing} of ${pairs}`;
  const parts = [
    wrapped(escapeControlCharacters(head)),
    ...(rows.length === 0 ? [] : [differenceTable(rows)]),
    sumTable(findings),
    notesOf(findings)
      .map((note) => wrapped(`note: ${escapeControlCharacters(note)}`))
      .join('\n'),
  ];
  return parts.filter((part) => part !== '').join('\n\n');
}

function wrapped(text: string): string {
  return wrap(text, maxColumns).join('\n');
}

/** What differs, a row each. All days of a model have a row only where no single day has. */
function differenceRows(found: Reconciliation): readonly (readonly string[])[] {
  const shown = new Set<string>();
  return found.lines.flatMap(({ day, model, comparisons, side }) => {
    const differing = comparisons.filter(
      ({ agrees: isSame, quantity }) => !isSame && (day !== null || !shown.has(`${quantity} ${model}`)),
    );
    return differing.map(({ quantity, theirs, ours }) => {
      shown.add(`${quantity} ${model}`);
      return [
        day ?? 'all days',
        model,
        names[quantity],
        side === 'ours' ? '-' : String(theirs),
        side === 'theirs' ? '-' : String(ours),
        difference(theirs, ours),
      ];
    });
  });
}

function differenceTable(rows: readonly (readonly string[])[]): string {
  const table = writeTable(
    ['DAY', 'MODEL', 'WHAT', 'EXPORT', 'RECORDS', 'DIFFERENCE'],
    rows.slice(0, maxTableRows),
    { right: ['EXPORT', 'RECORDS', 'DIFFERENCE'], cut: ['MODEL'] },
  );
  const more = rows.length - maxTableRows;
  return more > 0 ? `${table}\nand ${more} more: --json has all of them` : table;
}

/** How much more the export has than the records: `+100 (10.0%)`. */
function difference(theirs: number, ours: number): string {
  const more = theirs - ours;
  const share = ours === 0 ? '' : ` (${((more / ours) * 100).toFixed(1)}%)`;
  return `${more > 0 ? '+' : ''}${more}${share}`;
}

function sumTable({ found, theirs }: Findings): string {
  const wholes = wholeLinesOf(found);
  const rows = theirs.compared.map((quantity) => {
    const all = wholes.flatMap(({ comparisons }) => comparisons.filter((each) => each.quantity === quantity));
    const [their, our] = [sum(all.map((each) => each.theirs)), sum(all.map((each) => each.ours))];
    return [names[quantity], String(their), String(our), difference(their, our)];
  });
  const cost = theirs.hasCost ? formatUsd(sumNanos(wholes.map((line) => line.costNanos))) : '-';
  const charged = formatUsd(sumNanos(wholes.map((line) => line.chargedNanos)));
  return writeTable(
    ['TOGETHER', 'EXPORT', 'RECORDS', 'DIFFERENCE'],
    [...rows, ['USD (cost; charged to keys)', cost, charged, '']],
    { right: ['EXPORT', 'RECORDS', 'DIFFERENCE'] },
  );
}

function sumNanos(amounts: readonly bigint[]): bigint {
  return amounts.reduce((total, amount) => total + amount, 0n);
}

/** The report for programs: every line, whether it agrees or not. */
export function reportObject(findings: Findings): object {
  const { upstream, range, tolerance, theirs, ours, found } = findings;
  return {
    upstream,
    format: theirs.format,
    from: range.from,
    to: range.to,
    tolerance,
    agrees: agrees(findings),
    lines: dayLinesOf(found).map((line) => lineObject(line, theirs)),
    models: wholeLinesOf(found).map((line) => lineObject(line, theirs)),
    rows: theirs.rows,
    records: ours.records,
    notes: notesOf(findings),
  };
}

function lineObject(line: ReconciledLine, { hasCost }: TheirUsage): object {
  const { day, model, side, comparisons, refused, withoutUsage, costNanos, chargedNanos } = line;
  const of = (pick: 'theirs' | 'ours') =>
    Object.fromEntries(comparisons.map((each) => [jsonNames[each.quantity], each[pick]]));
  return {
    ...(day === null ? {} : { day }),
    model,
    agrees: line.agrees,
    differs: comparisons.filter((each) => !each.agrees).map(({ quantity }) => jsonNames[quantity]),
    export: side === 'ours' ? null : { ...of('theirs'), ...(hasCost ? { cost: formatUsd(costNanos) } : {}) },
    records:
      side === 'theirs'
        ? null
        : { ...of('ours'), charged: formatUsd(chargedNanos), without_usage: withoutUsage, refused },
  };
}

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
      `no record of these days has the upstream ${upstream}${didYouMean(upstream, ours.upstreams)}`,
    ],
    ...namesApart(days).map((note) => [true, note] as const),
  ];
  return notes.flatMap(([applies, note]) => (applies ? [note] : []));
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

import { escapeControlCharacters } from '../../shared/control-characters.ts';
import { count } from '../../shared/count.ts';
import { formatUsd } from '../../shared/money.ts';
import { dayBefore } from './calendar.ts';
import { maxColumns, wrap, writeTable } from '../output.ts';
import type { ReconciledLine, Reconciliation } from './compare.ts';
import { agrees, dayLinesOf, sum, wholeLinesOf } from './findings.ts';
import type { Findings } from './findings.ts';
import { notesOf } from './notes.ts';
import type { Quantity } from './quantities.ts';
import type { TheirUsage } from './read-export.ts';

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

import { systemClock } from '../../composition/clock.ts';
import { describeError } from '../describe-error.ts';
import { createProgress } from '../progress.ts';
import type { Json } from '../output.ts';
import { calendarOf, nextDay, parseDay } from './calendar.ts';
import { compareUsage } from './compare.ts';
import type { FormatName } from './formats.ts';
import { readOurUsage } from './our-usage.ts';
import type { DayRange } from './our-usage.ts';
import { readExport } from './read-export.ts';
import type { TheirUsage } from './read-export.ts';
import { agrees, reportObject, writeReport } from './report.ts';
import type { Findings } from './report.ts';

/** The options of `reconcile`, as commander names them. */
export interface ReconcileOptions extends Json {
  readonly upstream: string;
  readonly format?: FormatName;
  readonly from?: string;
  readonly to?: string;
  readonly tolerance?: string;
  readonly timeZone?: string;
  /** Each `theirs=ours`. */
  readonly map?: readonly string[];
}

/** The exit codes of the command. */
const exitCodes = { agrees: 0, differs: 1, wrongUsage: 2, unfinished: 3 } as const;

/** How much the sides may differ without `--tolerance`. */
const defaultTolerance = '1%';

/** Holds a provider's usage export against the gateway's records, and prints what differs. Sets the exit code. */
export async function reconcile(file: string, options: ReconcileOptions): Promise<void> {
  let failing: number = exitCodes.wrongUsage;
  const progress = createProgress(process.stderr, systemClock);
  try {
    const tolerance = readTolerance(options.tolerance ?? defaultTolerance);
    const calendar = calendarOf(options.timeZone ?? 'UTC');
    const names = readNames(options.map ?? []);
    const given = { from: readDay('--from', options.from), to: readDay('--to', options.to) };
    const reading = { format: options.format ?? null, calendar, names };
    const theirs = await readExport(file, reading).catch((error: unknown) => {
      throw new Error(`${file}: ${describeError(error)}`, { cause: error });
    });
    const range = rangeOf(theirs, given);
    // From here on, what the operator wrote is not at fault.
    failing = exitCodes.unfinished;
    const { upstream } = options;
    const ours = await readOurUsage(upstream, range, calendar, (text) => progress.show(text));
    progress.clear();
    const found = compareUsage(theirs, ours, range, tolerance);
    const isOver = calendar.startOf(range.to) <= systemClock.now();
    const findings: Findings = { upstream, range, tolerance, theirs, ours, found, isOver };
    console.log(options.json === true ? JSON.stringify(reportObject(findings)) : writeReport(findings));
    process.exitCode = agrees(findings) ? exitCodes.agrees : exitCodes.differs;
  } catch (error) {
    progress.clear();
    console.error(`textgate: ${describeError(error)}`);
    process.exitCode = failing;
  }
}

/** Reads a share such as `1%` or `0.5%`. */
function readTolerance(text: string): number {
  const match = /^(\d{1,3}(?:\.\d{1,6})?)%$/.exec(text);
  const share = Number(match?.[1] ?? Number.NaN) / 100;
  if (share <= 1) return share;
  throw new Error('--tolerance: expected a share from 0% to 100%, such as 0.5%');
}

/** Reads names of models: ours, by the provider's. */
function readNames(pairs: readonly string[]): ReadonlyMap<string, string> {
  return new Map(
    pairs.map((pair) => {
      const at = pair.indexOf('=');
      if (at < 1 || at === pair.length - 1)
        throw new Error('--map: expected the name in the export and the name in the config, as in a=b');
      return [pair.slice(0, at), pair.slice(at + 1)];
    }),
  );
}

function readDay(option: string, text: string | undefined): string | null {
  if (text === undefined) return null;
  const day = parseDay(text);
  if (day === null) throw new Error(`${option}: expected a day such as 2030-01-31`);
  return day;
}

/** The days to compare: those of the export, unless they are given. */
function rangeOf(
  { firstDay, lastDay }: TheirUsage,
  given: { readonly from: string | null; readonly to: string | null },
): DayRange {
  const from = given.from ?? firstDay;
  const to = given.to ?? (lastDay === null ? null : nextDay(lastDay));
  if (from === null || to === null)
    throw new Error('the export has no rows: give the days by --from and --to');
  if (from >= to) throw new Error(`there is no day from ${from} to before ${to}`);
  return { from, to };
}

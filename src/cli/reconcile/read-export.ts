import { nanosPerUsd, plainDecimal } from '../../shared/money.ts';
import { parseMoment } from './calendar.ts';
import type { Calendar } from './calendar.ts';
import { comparedQuantities, fieldsOf, findFormat } from './formats.ts';
import type { ExportFormat, FormatName } from './formats.ts';
import { ByDayAndModel, noSums } from './quantities.ts';
import type { Quantity, Sums } from './quantities.ts';
import { openExport } from './read-rows.ts';
import type { ExportRow } from './read-rows.ts';

/** What a provider's export says of a day and a model. */
interface TheirLine {
  readonly sums: Sums;
  /** In nano-USD. */
  costNanos: bigint;
}

/** What a provider's export says. */
export interface TheirUsage {
  readonly format: FormatName;
  /** The quantities that it has. */
  readonly compared: readonly Quantity[];
  readonly hasCost: boolean;
  readonly lines: ByDayAndModel<TheirLine>;
  /** The first and the last day in it; `null` if it has no rows. */
  readonly firstDay: string | null;
  readonly lastDay: string | null;
  readonly rows: number;
  /** Whether its last page says that there are more. */
  readonly isCut: boolean;
}

/** How an export is read. */
export interface ReadingTerms {
  readonly format: FormatName | null;
  readonly calendar: Calendar;
  /** Our names of models, by the provider's; others are the same. */
  readonly names: ReadonlyMap<string, string>;
}

/** Reads a provider's export. Throws an `Error` that names the line and the field at fault. */
export async function readExport(
  file: string,
  { format: chosen, calendar, names }: ReadingTerms,
): Promise<TheirUsage> {
  const { form, has, rows, emptyBuckets, isCut } = await openExport(file);
  const format = findFormat(form, has, chosen);
  const compared = comparedQuantities(format, has);
  const timeField = format.time.find(has) ?? '';
  const lines = new ByDayAndModel<TheirLine>(() => ({ sums: noSums(), costNanos: 0n }));
  let [firstDay, lastDay, read]: [string | null, string | null, number] = [null, null, 0];
  const readDay = (row: ExportRow): string => {
    const day = dayIn(row, timeField, calendar);
    if (firstDay === null || day < firstDay) firstDay = day;
    if (lastDay === null || day > lastDay) lastDay = day;
    return day;
  };
  for await (const row of rows) {
    const model = readModel(row, format);
    const line = lines.at(readDay(row), names.get(model) ?? model);
    for (const quantity of compared) line.sums[quantity] += readQuantity(row, format, quantity);
    if (format.cost !== null) line.costNanos += readCost(row, format.cost);
    read++;
  }
  for (const bucket of emptyBuckets) readDay(bucket);
  const hasCost = format.cost !== null && has(format.cost);
  return { format: format.name, compared, hasCost, lines, firstDay, lastDay, rows: read, isCut };
}

function dayIn(row: ExportRow, field: string, calendar: Calendar): string {
  const moment = parseMoment(row.get(field));
  if (moment === null)
    throw fault(row, field, 'expected a day such as 2030-01-31, a time in ISO 8601, or seconds since 1970');
  return moment.kind === 'day' ? moment.day : calendar.dayOf(moment.ms);
}

function readModel(row: ExportRow, { model: field, howToGroup }: ExportFormat): string {
  const model = row.get(field);
  if (typeof model !== 'string' || model === '') throw fault(row, field, `no model: ${howToGroup}`);
  return model;
}

function readQuantity(row: ExportRow, { quantities }: ExportFormat, quantity: Quantity): number {
  const each = quantities[quantity];
  if (each === undefined) return 0;
  if (each === 'each_row') return 1;
  return fieldsOf(each).reduce((sum, field) => sum + readCount(row, field), 0);
}

/** A count; an empty or missing one is 0. */
function readCount(row: ExportRow, field: string): number {
  const value = row.get(field) ?? '';
  if (value === '') return 0;
  const count = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
  if (Number.isSafeInteger(count) && (count as number) >= 0) return count as number;
  throw fault(row, field, 'expected a whole number without separators');
}

/** The longest number of a cost, in characters. */
const maxCostChars = 40;

/** A cost in USD, rounded to nano-USD; a missing one is 0. */
function readCost(row: ExportRow, field: string): bigint {
  const value = row.get(field) ?? '';
  const text = (
    typeof value === 'number' ? String(value) : typeof value === 'string' ? value : 'none'
  ).replace(/^(-?)\$/, '$1');
  if (text === '') return 0n;
  const sign = text.startsWith('-') ? -1n : 1n;
  const match = /^(\d+)(?:\.(\d+))?$/.exec(plainDecimal(text.replace(/^-/, '')));
  if (match === null || text.length > maxCostChars) throw fault(row, field, 'expected an amount of USD');
  const [, whole = '', fraction = ''] = match;
  const digits = fraction.padEnd(10, '0');
  const rounded = (BigInt(digits.slice(0, 10)) + 5n) / 10n;
  return sign * (BigInt(whole) * BigInt(nanosPerUsd) + rounded);
}

function fault({ place }: ExportRow, field: string, what: string): Error {
  return new Error(`${place}: ${field}: ${what}`);
}

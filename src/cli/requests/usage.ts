import type { PresentedUsage } from '../../http/present/usage.ts';
import { formatUsd, parseUsd } from '../../shared/money.ts';
import { didYouMean } from '../did-you-mean.ts';
import { readCsv, readList } from '../admin-client.ts';
import { findKeyId } from '../keys/find-key.ts';
import { withOptionNames } from '../keys/key-options.ts';
import { writeTable } from '../output.ts';

/** The options of `usage`, as commander names them. */
export interface UsageOptions {
  readonly by?: readonly string[];
  readonly from?: string;
  readonly to?: string;
  readonly month?: string;
  readonly key?: string;
  readonly group?: string;
  readonly model?: string;
  readonly upstream?: string;
  readonly outcome?: string;
  readonly tag?: string;
  readonly csv?: true;
  readonly json?: true;
}

const path = '/admin/usage';

/** How much of the past is shown without `--from`, in milliseconds. */
const defaultMs = 30 * 86_400_000;

/** The length of the day in a time in ISO 8601. */
const dayLength = 10;

/** Prints usage, as a table with a line of the totals, JSON or CSV. */
export async function showUsage({
  csv,
  json,
  by = ['day'],
  key,
  month,
  ...others
}: UsageOptions): Promise<string> {
  const filter = month === undefined ? others : { ...others, ...daysOf(month, others) };
  const from = filter.from ?? new Date(Date.now() - defaultMs).toISOString().slice(0, dayLength);
  const keyId = key === undefined ? {} : { key: await findKeyId(key) };
  const query = new URLSearchParams({ ...filter, ...keyId, by: by.join(), from }).toString();
  if (csv) return withOptionNames(() => readCsv(path, query, Infinity, 'after'));
  const rows = await withOptionNames(() => readList<PresentedUsage>(path, query, Infinity, 'after'));
  if (rows.length === 0) await requireNames(filter);
  if (json) return JSON.stringify(rows);
  const span = `from ${from}${filter.to === undefined ? '' : ` to ${filter.to}`} (UTC)`;
  return rows.length === 0 ? `no requests ${span}` : tableOf(rows, by, span);
}

/** The first day of a month, and that of the next one. */
function daysOf(month: string, { from, to }: UsageOptions): { readonly from: string; readonly to: string } {
  if (from !== undefined || to !== undefined)
    throw new Error('give the time once: --month, or --from and --to');
  const startMs = /^\d{4}-\d\d$/.test(month) ? Date.parse(`${month}-01`) : Number.NaN;
  if (Number.isNaN(startMs)) throw new Error(`--month: expected a month such as 2030-01, got ${month}`);
  const start = new Date(startMs);
  const days = [startMs, Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + 1)];
  const [first = '', next = ''] = days.map((atMs) => new Date(atMs).toISOString().slice(0, dayLength));
  return { from: first, to: next };
}

/** No rows would hide a misspelt name: throws if none of all requests has a name that was asked for. */
export async function requireNames(
  filter: Pick<UsageOptions, 'group' | 'model' | 'upstream' | 'tag'>,
): Promise<void> {
  for (const group of ['group', 'model', 'upstream', 'tag'] as const) {
    const name = filter[group] ?? '';
    if (name === '') continue;
    const rows = await readList<PresentedUsage>(path, `by=${group}`, Infinity, 'after');
    const known = rows.map((row) => row[group] ?? '');
    if (known.includes(name)) continue;
    throw new Error(`no request has the ${group} ${name}${didYouMean(name, known)}`);
  }
}

/** What a column of a group is titled, and what it says of a row. */
const groups: Readonly<Record<string, readonly [title: string, read: (row: PresentedUsage) => string]>> = {
  hour: ['HOUR (UTC)', ({ hour = '' }) => hour.slice(0, 16).replace('T', ' ')],
  day: ['DAY (UTC)', ({ day = '' }) => day],
  month: ['MONTH (UTC)', ({ month = '' }) => month],
  key: ['KEY', (row) => row.key_name ?? row.key_id ?? ''],
  group: ['GROUP', ({ group }) => group ?? '-'],
  model: ['MODEL', ({ model }) => model || '-'],
  upstream: ['UPSTREAM', ({ upstream }) => upstream || '-'],
  outcome: ['OUTCOME', ({ outcome }) => outcome || '-'],
  tag: ['TAG', ({ tag }) => tag ?? '-'],
};

/** What is added up beside the charge. */
const counts: readonly (readonly [title: string, read: (row: PresentedUsage) => number])[] = [
  ['REQUESTS', ({ requests }) => requests],
  ['IN', (row) => row.input_tokens],
  ['CACHED', (row) => row.cached_input_tokens],
  ['OUT', (row) => row.output_tokens],
];

const sums = [...counts.map(([title]) => title), 'CHARGE'];

/** Tokens are added up as `bigint`, and charges in nano-USD: the totals are as exact as the rows. */
function tableOf(rows: readonly PresentedUsage[], by: readonly string[], span: string): string {
  const columns = by.flatMap((name) => (groups[name] === undefined ? [] : [groups[name]]));
  const total = (read: (row: PresentedUsage) => bigint): bigint =>
    rows.reduce((sum, row) => sum + read(row), 0n);
  const totals = counts.map(([, read]) => String(total((row) => BigInt(read(row)))));
  const line = [...columns.map((_column, index) => (index === 0 ? 'total' : '')), ...totals];
  const table = writeTable(
    [...columns.map(([title]) => title), ...sums],
    [
      ...rows.map((row) => [
        ...columns.map(([, read]) => read(row)),
        ...counts.map(([, read]) => String(read(row))),
        row.charge,
      ]),
      ...(rows.length === 1 ? [] : [[...line, formatUsd(total(chargeOf))]]),
    ],
    { right: sums, cut: ['KEY', 'GROUP', 'MODEL', 'UPSTREAM', 'TAG'] },
  );
  return `${table}\n${span}; charges in USD`;
}

/** The charge of a row in nano-USD, which may be larger than what `parseUsd` takes. */
function chargeOf({ charge }: PresentedUsage): bigint {
  const [whole = '0', fraction = '0'] = charge.split('.');
  return BigInt(whole) * 1_000_000_000n + BigInt(parseUsd(`0.${fraction}`) ?? 0);
}

import { z } from 'zod';
import { findProblemOfHash, hashPrefix } from '../../../shared/key-hash.ts';
import { formatUsd, plainDecimal } from '../../../shared/money.ts';
import { refuseBy } from '../../../shared/schema-values.ts';
import { parseMoment } from '../../reconcile/calendar.ts';

/** The decimals of an amount that is kept. */
const decimals = 9;

/** Reads USD into nano-USD; what is below one of them is left out, or counts as a whole one if it is rounded `up`. */
function nanosOf(text: string, isUp: boolean): bigint | null {
  const [, whole, fraction = ''] = /^(\d+)(?:\.(\d+))?$/.exec(plainDecimal(text)) ?? [];
  if (whole === undefined) return null;
  const nanos = BigInt(whole + fraction.slice(0, decimals).padEnd(decimals, '0'));
  return isUp && /[1-9]/.test(fraction.slice(decimals)) ? nanos + 1n : nanos;
}

/** The periods of budgets by LiteLLM's names, at whose ends it begins them anew, too: at midnight, on Mondays, on the first. */
const periods: ReadonlyMap<string, 'day' | 'week' | 'month'> = new Map([
  ['1d', 'day'],
  ['24h', 'day'],
  ['daily', 'day'],
  ['7d', 'week'],
  ['1w', 'week'],
  ['weekly', 'week'],
  ['30d', 'month'],
  ['1mo', 'month'],
  ['monthly', 'month'],
]);

/** Names in a list of models that stand for those of a team or an organization, or for none. */
const otherModels = new Set(['all-team-models', 'all-org-models', 'no-default-models']);

/** Reads a list of PostgreSQL such as `{small,"gpt 4"}`. */
function readList(text: string): readonly string[] | null {
  if (!/^\{.*\}$/s.test(text)) return null;
  return [...text.slice(1, -1).matchAll(/"((?:[^"\\]|\\.)*)"|([^,"]+)/gs)].map(
    ([, quoted, plain = '']) => quoted?.replaceAll(/\\(.)/gs, '$1') ?? plain,
  );
}

/** Reads a list of models, in which no name or that of all models stands for all. */
function readModels(text: string): readonly string[] | 'all' | null {
  const names = readList(text);
  if (names === null || names.some((name) => otherModels.has(name))) return null;
  return names.length === 0 || names.includes('all-proxy-models') ? 'all' : names;
}

/** Routes by which a key calls models: one of them suffices. No route stands for all. */
const modelRoutes = /^(?:llm_api_routes|openai_routes|(?:\/v1)?\/(?:chat\/completions|responses|\*))$/;

/** Whether a key that is held to some routes may call models. */
function readCallsModels(text: string): boolean | null {
  const routes = readList(text);
  return routes && (routes.length === 0 || routes.some((route) => modelRoutes.test(route)));
}

/** Reads a time, which is in UTC if it has no offset, into milliseconds since 1970. */
function readTime(text: string): number | null {
  const moment = parseMoment(text);
  if (moment === null) return null;
  return moment.kind === 'day' ? Date.parse(moment.day) : moment.ms;
}

/** A cell, `null` if it is empty. A wrong one is not quoted: it may be a key. */
function cell<Value>(read: (text: string) => Value | null, expected: string) {
  return z.string().transform((text, { issues }) => {
    const value = text === '' ? null : read(text);
    if (value === null && text !== '')
      issues.push({ code: 'custom', input: null, message: `expected ${expected}` });
    return value;
  });
}

const truths = new Map([
  ['t', true],
  ['true', true],
  ['f', false],
  ['false', false],
]);

const text = cell(
  (given) => (/(?<![A-Za-z0-9])sk-[\w-]{8,}/.test(given) ? null : given),
  'a name: a key stands in its place',
);
const limit = cell((given) => (/^\d{1,15}$/.test(given) ? Number(given) : null), 'a whole number');
const usd = (isUp: boolean) => cell((given) => nanosOf(given, isUp), 'an amount of USD, such as 20 or 1e-05');

function findProblemOfToken(token: string): string | null {
  if (token.startsWith('sk-'))
    return 'a key stands in place of its hash; the file was written by something else than the documented command';
  const problem = findProblemOfHash(hashPrefix + token);
  return problem === null ? null : 'expected the SHA-256 of a key, 64 hexadecimal digits';
}

/** A row of LiteLLM's table of keys, as far as it is read. */
export const keyRow = z.object({
  token: z.string().superRefine(refuseBy(findProblemOfToken)),
  key_alias: text,
  key_name: text,
  team_id: text,
  // Rounded so that no key may spend more than there.
  spend: usd(true),
  max_budget: usd(false),
  budget_duration: cell(
    (given) => periods.get(given) ?? null,
    `one of ${[...periods.keys()].join(', ')}: a budget is per day, week or month of the calendar`,
  ),
  models: cell(readModels, 'names of models, such as {small,large}, or {} for all; none for those of a team'),
  expires: cell(readTime, 'a time such as 2030-01-31 12:00:00'),
  rpm_limit: limit,
  tpm_limit: limit,
  max_parallel_requests: limit,
  allowed_routes: cell(readCallsModels, 'names of routes, such as {llm_api_routes}, or {} for all'),
  blocked: cell((given) => truths.get(given) ?? null, 't or f'),
});

export type KeyRow = z.output<typeof keyRow>;

/** The fields of the admin API by the columns that they are made of. */
export const columnsOf: Readonly<Record<string, string>> = {
  name: 'key_alias',
  balance: 'max_budget',
  'budget.amount': 'max_budget',
  models: 'models',
  expiresAt: 'expires',
  requestsPerMinute: 'rpm_limit',
  tokensPerMinute: 'tpm_limit',
  concurrency: 'max_parallel_requests',
};

/** The key of a row as the admin API takes it. A budget that is never full again is a balance, of which what is left is taken. */
export function importOf(row: KeyRow, name: string): object {
  const { max_budget: most, budget_duration: per, models, expires } = row;
  const left = (most ?? 0n) - (row.spend ?? 0n);
  return {
    hash: hashPrefix + row.token,
    name,
    balance: most === null || per !== null ? undefined : formatUsd(left < 0n ? 0n : left),
    budget: most === null || per === null ? null : { amount: formatUsd(most), per },
    models: models === 'all' ? null : models,
    expiresAt: expires === null ? null : new Date(expires).toISOString(),
    requestsPerMinute: row.rpm_limit ?? undefined,
    tokensPerMinute: row.tpm_limit ?? undefined,
    concurrency: row.max_parallel_requests ?? undefined,
  };
}

/** What of a row is not taken over with its key. */
export function notesOf({ max_budget: most, budget_duration: per, spend, team_id: team }: KeyRow): string {
  const spent = most === null || per === null || spend === null || spend === 0n ? null : formatUsd(spend);
  const notes = [
    spent === null ? null : `${spent} USD of its ${per} are spent there, and do not count here`,
    team === null ? null : 'the limits of its team are not taken over',
  ].filter((note) => note !== null);
  return notes.length === 0 ? '' : ` (${notes.join('; ')})`;
}

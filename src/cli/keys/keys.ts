import { escapeControlCharacters } from '../../shared/control-characters.ts';
import { parseDuration } from '../../shared/duration.ts';
import { parseUsd } from '../../shared/money.ts';
import type { PresentedKey } from '../../http/admin/keys.ts';
import type { ManagedKey } from '../../http/present/managed-key.ts';
import { count } from '../../shared/count.ts';
import { callAdmin, readList } from '../admin-client.ts';
import { writeTable, writeTime } from '../output.ts';
import type { Json } from '../output.ts';
import { withOptionNames, settingsOf, settingsOfNew } from './key-options.ts';
import type { CreditOptions, KeyOptions, ListOptions, RotateOptions } from './key-options.ts';
import { budgetRows, groupRows } from './groups.ts';
import { findKeyId, keyPath, searchedKeys } from './find-key.ts';

/** A key as the admin listener returns it; it has `key`, the secret, only when it was just created or rotated. */
type KeyObject = PresentedKey & { readonly key?: string };

/** Creates a key and prints its secret. */
export async function createKey(name: string, options: KeyOptions): Promise<string> {
  const settings = { ...settingsOfNew(options), name };
  const made = await withOptionNames(() => callAdmin<KeyObject>('POST', '/admin/keys', settings));
  const same = (await searchedKeys()).filter((key) => key.name === name).length;
  if (same > 1)
    console.error(
      `${same} keys are now named ${escapeControlCharacters(name)}: commands need the id of one of them`,
    );
  return options.json ? JSON.stringify(made) : writeSecret(made);
}

/** The orders of a list: the listener's own has the newest key first, and large amounts come first. */
const orders: Readonly<
  Record<NonNullable<ListOptions['sort']>, (one: KeyObject, other: KeyObject) => number>
> = {
  created: () => 0,
  name: (one, other) => one.name.localeCompare(other.name),
  spent: (one, other) => nanosOf(other.spent) - nanosOf(one.spent),
  balance: (one, other) => nanosOf(other.balance) - nanosOf(one.balance),
};

/** An amount in nano-USD, for comparisons; a key without a balance comes last. */
function nanosOf(amount: string | null): number {
  if (amount === null) return -Number.MAX_VALUE;
  return amount.startsWith('-') ? -(parseUsd(amount.slice(1)) ?? 0) : (parseUsd(amount) ?? 0);
}

/** The length of the day in a time in ISO 8601. */
const dayLength = 10;

/** The place of the groups in the table, which is left out where no key has one. */
const groupColumn = 2;

/** Lists the keys, all or those that are searched for, as a table or JSON. */
export async function listKeys({ json, search = '', sort = 'created' }: ListOptions): Promise<string> {
  const query = new URLSearchParams({ search }).toString();
  const keys = (await readList<KeyObject>('/admin/keys', query)).toSorted(orders[sort]);
  if (json) return JSON.stringify(keys);
  const hasGroups = keys.some(({ group }) => group !== null);
  const shown = (row: readonly string[]) => (hasGroups ? row : row.toSpliced(groupColumn, 1));
  return writeTable(
    shown(['ID', 'NAME', 'GROUP', 'CREATED', 'AT ONCE', 'PER MIN', 'BALANCE', 'SPENT', 'STATE']),
    keys.map((key) =>
      shown([
        key.id,
        key.name,
        key.group ?? '-',
        key.created_at.slice(0, dayLength),
        String(key.limits.concurrency),
        String(key.limits.requests_per_minute),
        key.balance ?? '-',
        key.spent,
        key.declared ? `${stateOf(key)}, declared` : stateOf(key),
      ]),
    ),
    { right: ['AT ONCE', 'PER MIN', 'BALANCE', 'SPENT'], cut: ['NAME', 'GROUP'] },
  );
}

/** Prints one key. */
export async function showKey(idOrName: string, { json }: Json): Promise<string> {
  const key = await callAdmin<KeyObject>('GET', keyPath(await findKeyId(idOrName)));
  if (json) return JSON.stringify(key);
  return writeTable(
    ['', ''],
    [
      ['id', key.id],
      ['name', key.name],
      ['state', stateOf(key)],
      ['declared in the config', key.declared ? 'yes' : 'no'],
      ['created', key.created_at],
      ['expires', key.expires_at ?? 'never'],
      ['models', key.models?.join(', ') ?? 'all'],
      ['allowed from', key.allow_from?.join(', ') ?? 'all'],
      ['tags', key.tags.join(', ') || 'none'],
      ['requests at once', `${key.limits.concurrency}, ${key.in_flight} of them in progress`],
      ['refused today', writeRefused(key.refused_today)],
      ['requests per minute', String(key.limits.requests_per_minute)],
      ['tokens per minute', String(key.limits.tokens_per_minute ?? 'not limited')],
      ['tokens per day', String(key.limits.tokens_per_day ?? 'not limited')],
      ['wait for a slot', waitOf(key.limits)],
      ['weight', String(key.weight)],
      ['time for retries', joinsOf(key)],
      ['sampling', key.compatibility.sampling],
      ['unknown fields', key.compatibility.unknown_fields],
      ['[DONE] in responses', String(key.compatibility.responses_done)],
      ['cost in usage', String(key.compatibility.usage_cost)],
      ['charge in streams', String(key.compatibility.charge_comment)],
      ['balance', key.balance ?? 'none set'],
      ['held', key.held],
      ['low balance', key.low_balance ?? 'default'],
      ['spent', key.spent],
      ...budgetRows(key.budget, 'budget', 'left in this period'),
      ...(await groupRows(key.group)),
    ],
  ).trimStart();
}

/** Changes the settings of a key that are given. */
export async function updateKey(idOrName: string, options: KeyOptions): Promise<string> {
  const { json: _json, ...changes } = options;
  if (Object.keys(changes).length === 0)
    throw new Error('nothing to change: give at least one option (see --help)');
  const id = await findKeyId(idOrName);
  const changed = await withOptionNames(() => callAdmin('PATCH', keyPath(id), settingsOf(options)));
  return options.json
    ? JSON.stringify(changed)
    : `${id} is changed; the change applies from its next request on`;
}

/** Revokes a key. */
export async function revokeKey(idOrName: string, { json }: Json): Promise<string> {
  const id = await findKeyId(idOrName);
  const revoked = await callAdmin('DELETE', keyPath(id));
  return json ? JSON.stringify(revoked) : `${id} is revoked: its next request is refused`;
}

/** Gives a key another secret and prints it. */
export async function rotateKey(idOrName: string, { grace, json }: RotateOptions): Promise<string> {
  const id = await findKeyId(idOrName);
  const path = `${keyPath(id)}/rotate`;
  const rotated = await withOptionNames(() => callAdmin<KeyObject>('POST', path, { grace }));
  const graceMs = parseDuration(grace) ?? 0;
  if (graceMs > 0)
    console.error(
      `the old secret works until ${writeTime(new Date(Date.now() + graceMs).toISOString())} UTC`,
    );
  return json ? JSON.stringify(rotated) : writeSecret(rotated);
}

/** Adds to the balance of a key, once per reference. */
export async function creditKey(
  idOrName: string,
  amount: string,
  { reference, json }: CreditOptions,
): Promise<string> {
  if (reference === undefined)
    throw new Error(
      '--reference is missing: give the id of the payment, such as an invoice number.\nA reference is booked only once, so the command can be repeated when its answer was lost.',
    );
  const id = await findKeyId(idOrName);
  const before = await callAdmin<KeyObject>('GET', keyPath(id));
  const credit = (await withOptionNames(() =>
    callAdmin('POST', `${keyPath(id)}/credits`, { amount, reference }),
  )) as {
    booked: boolean;
    balance: string;
  };
  if (json) return JSON.stringify(credit);
  const first =
    before.balance === null && credit.booked
      ? '; from now on the requests of this key, which had no balance, are paid from it'
      : '';
  return `${credit.booked ? 'booked' : 'already booked earlier'}; the balance is ${credit.balance} USD${first}`;
}

function writeSecret({ id, key }: KeyObject): string {
  // On standard error, so that a shell can capture the secret alone.
  console.error(`key id: ${id}; its secret is shown only once:`);
  return String(key);
}

/** How long a request waits for a slot of its key. */
export function waitOf({ queue_wait_ms: waitMs }: Pick<KeyObject['limits'], 'queue_wait_ms'>): string {
  return waitMs === 0 ? 'none' : `up to ${waitMs / 1_000} s`;
}

/** How long a request goes on for a retry to join it; a server of an earlier version has no such setting. */
function joinsOf({ join_retries_ms: joinRetriesMs = null }: Partial<ManagedKey>): string {
  return joinRetriesMs === null ? 'off' : `up to ${joinRetriesMs / 1_000} s`;
}

function stateOf({ revoked_at: revokedAt, expires_at: expiresAt }: KeyObject): string {
  if (revokedAt !== null) return 'revoked';
  return expiresAt !== null && Date.parse(expiresAt) <= Date.now() ? 'expired' : 'active';
}

/** How many requests of a key were refused today, and by which limits; a server of an earlier version does not say. */
function writeRefused(byLimit: Partial<ManagedKey>['refused_today']): string {
  if (byLimit === undefined) return '-';
  const limits = Object.entries(byLimit).toSorted(([, one], [, other]) => other - one);
  const sum = limits.reduce((total, [, requests]) => total + requests, 0);
  if (sum === 0) return 'none';
  return `${count(sum, 'request')}: ${limits.map(([limit, requests]) => `${requests} by ${limit}`).join(', ')}`;
}

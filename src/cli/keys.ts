import { InvalidArgumentError, Option } from 'commander';
import type { Command } from 'commander';
import { callAdmin, readList } from './admin-client.ts';
import { report, writeTable } from './output.ts';

/** A key as the admin listener returns it; it has `key`, the secret, only when it was just created or rotated. */
interface KeyObject {
  readonly id: string;
  readonly name: string;
  readonly created_at: string;
  readonly revoked_at: string | null;
  readonly expires_at: string | null;
  readonly models: readonly string[] | null;
  readonly limits: {
    readonly concurrency: number;
    readonly requests_per_minute: number;
    readonly queue_wait_ms: number;
  };
  readonly compatibility: {
    readonly sampling: string;
    readonly unknown_fields: string;
    readonly responses_done: boolean;
  };
  readonly balance: string | null;
  readonly held: string;
  readonly spent: string;
  readonly in_flight: number;
  readonly declared: boolean;
  readonly key?: string;
}

/** The options of `create` and `update`, as commander names them. */
interface KeyOptions {
  readonly name?: string;
  readonly concurrency?: number;
  readonly requestsPerMinute?: number;
  readonly queueWait?: string;
  readonly balance?: string;
  readonly model?: readonly string[];
  readonly expires?: string;
  readonly sampling?: string;
  readonly unknownFields?: string;
  readonly responsesDone?: string;
  readonly json?: true;
}

interface Json {
  readonly json?: true;
}

/** Adds `textgate keys create|list|show|update|revoke|rotate|credit`. */
export function addKeysCommands(program: Command): void {
  const keys = program.command('keys').description('create and manage the API keys of clients');
  const add = (signature: string, description: string): Command =>
    keys.command(signature).description(description).option('--json', 'print JSON');

  withSettings(add('create <name>', 'create a key; its secret is shown only once'))
    .option('--balance <usd>', 'prepaid balance in USD; unlimited without it')
    .action((name: string, options: KeyOptions) => report(() => createKey(name, options)));
  add('list', 'list all keys, newest first').action((options: Json) => report(() => listKeys(options)));
  add('show <id>', 'show one key').action((id: string, options: Json) => report(() => showKey(id, options)));
  withSettings(add('update <id>', 'change a key; options that are not given stay as they are'))
    .option('--name <name>', 'new name')
    .action((id: string, options: KeyOptions) => report(() => updateKey(id, options)));
  add('revoke <id>', 'revoke a key; its next request is refused').action((id: string, options: Json) =>
    report(() => revokeKey(id, options)),
  );
  add('rotate <id>', 'create a new secret for a key; it is shown only once')
    .option('--grace <duration>', 'how long the old secret stays valid, such as 1h', '0s')
    .action((id: string, options: Json & { grace: string }) => report(() => rotateKey(id, options)));
  add('credit <id> <usd>', "add to a key's balance")
    .requiredOption('--reference <text>', 'id of the payment; the same reference is booked only once')
    .action((id: string, amount: string, options: Json & { reference: string }) =>
      report(() => creditKey(id, amount, options)),
    );
}

/** Adds the options that `create` and `update` share. */
function withSettings(command: Command): Command {
  return command
    .option('--concurrency <n>', 'how many requests may be in progress at once', wholeNumber)
    .option('--requests-per-minute <n>', 'how many requests may start within any 60 seconds', wholeNumber)
    .option('--queue-wait <duration>', 'how long a request may wait for a slot, such as 5s')
    .option('--model <name...>', 'restrict to these models; `all` lifts the restriction')
    .option('--expires <time>', 'when the key expires, such as 2030-01-01T00:00:00Z, or never')
    .addOption(
      new Option('--sampling <policy>', 'how to treat sampling parameters').choices(['strip', 'strict']),
    )
    .addOption(
      new Option('--unknown-fields <policy>', 'how to treat unknown fields').choices(['reject', 'ignore']),
    )
    .addOption(
      new Option('--responses-done <bool>', 'whether Responses streams end with [DONE]').choices([
        'true',
        'false',
      ]),
    );
}

function settingsOf(options: KeyOptions): object {
  const { model, expires, sampling, unknownFields, responsesDone: done, json: _json, ...rest } = options;
  const responsesDone = done === undefined ? undefined : done === 'true';
  const compatibility = { sampling, unknownFields, responsesDone };
  // `all` and `never`, which `show` prints for keys without a restriction, lift it.
  const models = model?.length === 1 && model[0] === 'all' ? null : model;
  return { ...rest, models, expiresAt: expires === 'never' ? null : expires, compatibility };
}

async function createKey(name: string, options: KeyOptions): Promise<string> {
  const made = (await callAdmin('POST', '/admin/keys', { name, ...settingsOf(options) })) as KeyObject;
  return options.json ? JSON.stringify(made) : writeSecret(made);
}

async function listKeys({ json }: Json): Promise<string> {
  const keys = (await readList('/admin/keys')) as KeyObject[];
  if (json) return JSON.stringify(keys);
  return writeTable(
    ['ID', 'NAME', 'CREATED', 'CONCURRENCY', 'PER MINUTE', 'BALANCE', 'SPENT', 'STATE'],
    keys.map((key) => [
      key.id,
      key.name,
      key.created_at,
      String(key.limits.concurrency),
      String(key.limits.requests_per_minute),
      key.balance ?? '-',
      key.spent,
      key.declared ? `${stateOf(key)}, declared` : stateOf(key),
    ]),
  );
}

async function showKey(id: string, { json }: Json): Promise<string> {
  const key = (await callAdmin('GET', pathOf(id))) as KeyObject;
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
      ['requests at once', `${key.limits.concurrency}, ${key.in_flight} of them in progress`],
      ['requests per minute', String(key.limits.requests_per_minute)],
      ['wait for a slot', `${key.limits.queue_wait_ms / 1_000}s`],
      ['sampling', key.compatibility.sampling],
      ['unknown fields', key.compatibility.unknown_fields],
      ['[DONE] in responses', String(key.compatibility.responses_done)],
      ['balance', key.balance ?? 'none set'],
      ['held', key.held],
      ['spent', key.spent],
    ],
  ).trimStart();
}

async function updateKey(id: string, options: KeyOptions): Promise<string> {
  const { json: _json, ...changes } = options;
  if (Object.keys(changes).length === 0)
    throw new Error('nothing to change: give at least one option (see --help)');
  const changed = await callAdmin('PATCH', pathOf(id), settingsOf(options));
  return options.json
    ? JSON.stringify(changed)
    : `${id} is changed; the change applies from its next request on`;
}

async function revokeKey(id: string, { json }: Json): Promise<string> {
  const revoked = await callAdmin('DELETE', pathOf(id));
  return json ? JSON.stringify(revoked) : `${id} is revoked: its next request is refused`;
}

async function rotateKey(id: string, { grace, json }: Json & { grace: string }): Promise<string> {
  const rotated = (await callAdmin('POST', `${pathOf(id)}/rotate`, { grace })) as KeyObject;
  return json ? JSON.stringify(rotated) : writeSecret(rotated);
}

async function creditKey(
  id: string,
  amount: string,
  { reference, json }: Json & { reference: string },
): Promise<string> {
  const before = (await callAdmin('GET', pathOf(id))) as KeyObject;
  const credit = (await callAdmin('POST', `${pathOf(id)}/credits`, { amount, reference })) as {
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

function pathOf(id: string): string {
  return `/admin/keys/${encodeURIComponent(id)}`;
}

function writeSecret({ id, key }: KeyObject): string {
  // On standard error, so that a shell can capture the secret alone.
  console.error(`key id: ${id}; its secret is shown only once:`);
  return String(key);
}

function stateOf({ revoked_at: revokedAt, expires_at: expiresAt }: KeyObject): string {
  if (revokedAt !== null) return 'revoked';
  return expiresAt !== null && Date.parse(expiresAt) <= Date.now() ? 'expired' : 'active';
}

function wholeNumber(text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value > 0) return value;
  throw new InvalidArgumentError('Expected a whole number of 1 or more.');
}

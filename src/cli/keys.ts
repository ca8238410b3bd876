import { InvalidArgumentError, Option } from 'commander';
import type { Command } from 'commander';
import { callAdmin } from './admin-client.ts';
import { report, writeTable } from './output.ts';

/** A key as the admin listener shows it; `key` only when it was just made. */
interface ShownKey {
  readonly id: string;
  readonly name: string;
  readonly created_at: string;
  readonly limits: { readonly concurrency: number; readonly requests_per_minute: number };
  readonly balance: string | null;
  readonly spent: string;
  readonly key?: string;
}

interface CreateOptions {
  readonly concurrency?: number;
  readonly requestsPerMinute?: number;
  readonly balance?: string;
  readonly sampling?: string;
  readonly unknownFields?: string;
  readonly json?: true;
}

/** Adds `textgate keys create|list|credit`. */
export function addKeysCommands(program: Command): void {
  const keys = program.command('keys').description('make and list the keys that clients use');
  keys
    .command('create <name>')
    .description('make a key; it is shown only now')
    .option('--concurrency <n>', 'requests in progress at once', wholeNumber)
    .option('--requests-per-minute <n>', 'starts in any 60 seconds', wholeNumber)
    .option('--balance <usd>', 'USD that its requests are paid from; without it there is no end to them')
    .addOption(
      new Option('--sampling <policy>', 'what becomes of sampling parameters').choices(['strip', 'strict']),
    )
    .addOption(
      new Option('--unknown-fields <policy>', 'what becomes of unknown fields').choices(['reject', 'ignore']),
    )
    .option('--json', 'print JSON')
    .action((name: string, options: CreateOptions) => report(() => createKey(name, options)));
  keys
    .command('list')
    .description('list the keys, newest first')
    .option('--json', 'print JSON')
    .action((options: { json?: true }) => report(() => listKeys(options)));
  keys
    .command('credit <id> <usd>')
    .description("add to a key's balance")
    .requiredOption('--reference <text>', 'names the payment: the same one is booked once')
    .option('--json', 'print JSON')
    .action((id: string, amount: string, options: { reference: string; json?: true }) =>
      report(() => creditKey(id, amount, options)),
    );
}

async function createKey(name: string, options: CreateOptions): Promise<string> {
  const { json, sampling, unknownFields, ...limits } = options;
  const body = { name, ...limits, compatibility: { sampling, unknownFields } };
  const made = (await callAdmin('POST', '/admin/keys', body)) as ShownKey;
  return json ? JSON.stringify(made) : `${made.key}\n${made.id} is its id; the key itself is shown only now.`;
}

async function creditKey(
  id: string,
  amount: string,
  { reference, json }: { reference: string; json?: true },
): Promise<string> {
  const path = `/admin/keys/${encodeURIComponent(id)}/credits`;
  const credit = (await callAdmin('POST', path, { amount, reference })) as {
    booked: boolean;
    balance: string;
  };
  if (json) return JSON.stringify(credit);
  return `${credit.booked ? 'booked' : 'booked before, and not again'}; the balance is ${credit.balance} USD`;
}

async function listKeys({ json }: { json?: true }): Promise<string> {
  const keys: ShownKey[] = [];
  let before: string | null = null;
  do {
    const cursor: string = before === null ? '' : `&before=${before}`;
    const page = (await callAdmin('GET', `/admin/keys?limit=200${cursor}`)) as {
      data: ShownKey[];
      next: string | null;
    };
    keys.push(...page.data);
    before = page.next;
  } while (before !== null);
  if (json) return JSON.stringify(keys);
  return writeTable(
    ['ID', 'NAME', 'CREATED', 'CONCURRENCY', 'PER MINUTE', 'BALANCE', 'SPENT'],
    keys.map(({ id, name, created_at: created, limits, balance, spent }) => [
      id,
      name,
      created,
      String(limits.concurrency),
      String(limits.requests_per_minute),
      balance ?? '-',
      spent,
    ]),
  );
}

function wholeNumber(text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value > 0) return value;
  throw new InvalidArgumentError('a whole number from 1 is needed');
}

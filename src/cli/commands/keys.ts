import { Option } from 'commander';
import type { Command } from 'commander';
import type { CreditOptions, KeyOptions, ListOptions, RotateOptions } from '../keys/key-options.ts';
import { report } from '../output.ts';
import type { Json } from '../output.ts';
import { listOf, wholeNumber } from './arguments.ts';

const loadActions = () => import('../keys/keys.ts');

/** Adds `textgate keys create|list|groups|show|update|revoke|rotate|credit`. */
export function addKeysCommands(program: Command): void {
  const keys = program
    .command('keys')
    .description(
      'create and manage the API keys of clients; <key> is an id, or a name that only one key has',
    );
  const add = (signature: string, description: string): Command =>
    keys.command(signature).description(description).option('--json', 'print JSON');

  withSettings(add('create <name>', 'create a key; its secret is shown only once'))
    .option('--balance <usd>', 'prepaid balance in USD; unlimited without it')
    .action((name: string, options: KeyOptions) =>
      report(async () => (await loadActions()).createKey(name, options)),
    );
  add('list', 'list the keys, newest first')
    .option('--search <text>', 'only keys with this text in the name or at the beginning of the id')
    .addOption(
      new Option('--sort <by>', 'the order of the list').choices(['created', 'name', 'spent', 'balance']),
    )
    .action((options: ListOptions) => report(async () => (await loadActions()).listKeys(options)));
  keys
    .command('groups')
    .description('list the groups of the config, with what their keys have spent together')
    .option('--json', 'print JSON')
    .action((options: Json) => report(async () => (await import('../keys/groups.ts')).showGroups(options)));
  add('show <key>', 'show one key').action((key: string, options: Json) =>
    report(async () => (await loadActions()).showKey(key, options)),
  );
  withSettings(add('update <key>', 'change a key; options that are not given stay as they are'))
    .option('--name <name>', 'new name')
    .action((key: string, options: KeyOptions) =>
      report(async () => (await loadActions()).updateKey(key, options)),
    );
  add('revoke <key>', 'revoke a key; its next request is refused').action((key: string, options: Json) =>
    report(async () => (await loadActions()).revokeKey(key, options)),
  );
  add('rotate <key>', 'create a new secret for a key; it is shown only once')
    .option('--grace <duration>', 'how long the old secret stays valid, such as 1h', '0s')
    .action((key: string, options: RotateOptions) =>
      report(async () => (await loadActions()).rotateKey(key, options)),
    );
  add('credit <key> <usd>', "add to a key's balance")
    .option(
      '--reference <text>',
      'required: id of the payment; a retry with the same reference books nothing',
    )
    .action((key: string, amount: string, options: CreditOptions) =>
      report(async () => (await loadActions()).creditKey(key, amount, options)),
    );
}

const truths = ['true', 'false'];

/** Adds the options that `create` and `update` share. */
function withSettings(command: Command): Command {
  return command
    .option('--concurrency <n>', 'how many requests may be in progress at once', wholeNumber)
    .option('--requests-per-minute <n>', 'how many requests may start within any 60 seconds', wholeNumber)
    .option('--tokens-per-minute <n>', 'how many tokens may be used within any 60 seconds', wholeNumber)
    .option('--tokens-per-day <n>', 'how many tokens may be used within any 24 hours', wholeNumber)
    .option(
      '--queue-wait <duration>',
      'how long a request too many waits for a slot before its 429, such as 10s; by default 0s',
    )
    .option('--weight <n>', 'its weight in the queues of upstreams; by default 1', wholeNumber)
    .option('--budget <usd/period>', 'USD per day, week or month, such as 20/month, or none')
    .option('--time-zone <zone>', 'the time zone of the budget, such as Europe/Berlin; by default UTC')
    .option(
      '--warn-at <part...>',
      'the parts of the budget that count as nearly used up, such as 0.8, or none',
    )
    .option('--raise <usd>', 'USD added to the budget until --raise-until, or none')
    .option('--raise-until <time>', 'when the raise ends, such as 2030-01-01T00:00:00Z')
    .option('--group <name>', 'share the budget and the concurrency of a group of the config, or none')
    .option('--low-balance <usd>', 'webhooks are sent `balance.low` below this, in USD, or default')
    .option('--model <name...>', 'restrict to these models; `all` lifts the restriction')
    .option('--allow-from <network...>', 'allow only these, such as 10.0.0.0/8; `all` lifts the restriction')
    .option('--tags <names>', 'the tags that its requests may have, such as search,chat; `` for none', listOf)
    .option('--expires <time>', 'when the key expires, such as 2030-01-01T00:00:00Z, or never')
    .addOption(
      new Option('--sampling <policy>', 'how to treat sampling parameters').choices(['strip', 'strict']),
    )
    .addOption(
      new Option('--unknown-fields <policy>', 'how to treat unknown fields').choices(['reject', 'ignore']),
    )
    .addOption(
      new Option('--responses-done <bool>', 'whether Responses streams end with [DONE]').choices(truths),
    )
    .addOption(new Option('--usage-cost <bool>', 'whether usage has the charge as cost').choices(truths))
    .addOption(
      new Option('--charge-comment <bool>', 'whether streams have the charge in a comment').choices(truths),
    );
}

import { Option } from 'commander';
import type { Command } from 'commander';
import type { CreditOptions, KeyOptions, ListOptions, RotateOptions } from '../keys/key-options.ts';
import { report } from '../output.ts';
import type { Json } from '../output.ts';
import { withSettings } from './key-settings.ts';

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

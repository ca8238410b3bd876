import { Option } from 'commander';
import type { Command } from 'commander';
import { printing } from '../output.ts';
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
    .action(printing(async () => (await loadActions()).createKey));
  add('list', 'list the keys, newest first')
    .option('--search <text>', 'only keys with this text in the name or at the beginning of the id')
    .addOption(
      new Option('--sort <by>', 'the order of the list').choices(['created', 'name', 'spent', 'balance']),
    )
    .action(printing(async () => (await loadActions()).listKeys));
  add('groups', 'list the groups of the config, with what their keys have spent together').action(
    printing(async () => (await import('../keys/groups.ts')).showGroups),
  );
  add('show <key>', 'show one key').action(printing(async () => (await loadActions()).showKey));
  withSettings(add('update <key>', 'change a key; options that are not given stay as they are'))
    .option('--name <name>', 'new name')
    .action(printing(async () => (await loadActions()).updateKey));
  add('revoke <key>', 'revoke a key; its next request is refused').action(
    printing(async () => (await loadActions()).revokeKey),
  );
  add('rotate <key>', 'create a new secret for a key; it is shown only once')
    .option('--grace <duration>', 'how long the old secret stays valid, such as 1h', '0s')
    .action(printing(async () => (await loadActions()).rotateKey));
  add('credit <key> <usd>', "add to a key's balance")
    .option(
      '--reference <text>',
      'required: id of the payment; a retry with the same reference books nothing',
    )
    .action(printing(async () => (await loadActions()).creditKey));
}

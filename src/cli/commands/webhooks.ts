import { Option } from 'commander';
import type { Command } from 'commander';
import { printing } from '../output.ts';
import { wholeNumber } from './arguments.ts';

const loadActions = () => import('../webhooks.ts');

/** Adds `textgate webhooks list|deliveries|test|resend`. */
export function addWebhooksCommands(program: Command): void {
  const webhooks = program
    .command('webhooks')
    .description('see, test and repeat the deliveries of events to webhooks');
  const add = (signature: string, description: string): Command =>
    webhooks.command(signature).description(description).option('--json', 'print JSON');
  add('list', 'list the webhooks of the config, with what waits and what was given up').action(
    printing(async () => (await loadActions()).listWebhooks),
  );
  add('deliveries', 'list deliveries, newest first; they are kept for 7 days')
    .option('--webhook <name>', 'only those to this webhook')
    .addOption(
      new Option('--state <state>', 'only those in this state').choices(['waiting', 'delivered', 'dead']),
    )
    .option('--limit <n>', 'only the newest n; the default is 50', wholeNumber)
    .action(printing(async () => (await loadActions()).listDeliveries));
  add('test <name>', 'send a webhook the event `webhook.test`, and print what came of it').action(
    printing(async () => (await loadActions()).testWebhook),
  );
  add('resend <event>', 'deliver an event again, under its id; receivers that have it drop it')
    .option('--webhook <name>', 'only to this webhook; default: to all of the config that it was sent to')
    .action(printing(async () => (await loadActions()).resendEvent));
}

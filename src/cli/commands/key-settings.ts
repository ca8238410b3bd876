import { Option } from 'commander';
import type { Command } from 'commander';
import { listOf, wholeNumber } from './arguments.ts';

/** A setting of a key: how the admin API calls it, and how it is given on the command line. */
interface KeySetting {
  /** The parts of a budget and of the compatibility are behind a dot. */
  readonly field: string;
  readonly flags: string;
  readonly help: string;
  readonly read?: (text: string) => unknown;
  readonly choices?: readonly string[];
  /** What `show` prints for a key without a setting of its own, and what takes it away. */
  readonly none?: string;
}

const truths = ['true', 'false'];

/** The settings that a key is made with, and that can be changed. */
// oxfmt-ignore
export const keySettings: readonly KeySetting[] = [
  { field: 'concurrency', flags: '--concurrency <n>', read: wholeNumber,
    help: 'how many requests may be in progress at once' },
  { field: 'requestsPerMinute', flags: '--requests-per-minute <n>', read: wholeNumber,
    help: 'how many requests may start within any 60 seconds' },
  { field: 'tokensPerMinute', flags: '--tokens-per-minute <n>', read: wholeNumber,
    help: 'how many tokens may be used within any 60 seconds' },
  { field: 'tokensPerDay', flags: '--tokens-per-day <n>', read: wholeNumber,
    help: 'how many tokens may be used within any 24 hours' },
  { field: 'queueWait', flags: '--queue-wait <duration>',
    help: 'how long a request too many waits for a slot before its 429, such as 10s; by default 0s' },
  { field: 'weight', flags: '--weight <n>', read: wholeNumber,
    help: 'its weight in the queues of upstreams; by default 1' },
  { field: 'joinRetries', flags: '--join-retries <duration>', none: 'off',
    help: 'go on without its client, and be paid, so that the retry of an SDK joins: 1s to 60s, or off' },
  { field: 'budget', flags: '--budget <usd/period>',
    help: 'USD per day, week or month, such as 20/month, or none' },
  { field: 'budget.timeZone', flags: '--time-zone <zone>',
    help: 'the time zone of the budget, such as Europe/Berlin; by default UTC' },
  { field: 'budget.warnAt', flags: '--warn-at <part...>',
    help: 'the parts of the budget that count as nearly used up, such as 0.8, or none' },
  { field: 'budget.raise.amount', flags: '--raise <usd>',
    help: 'USD added to the budget until --raise-until, or none' },
  { field: 'budget.raise.until', flags: '--raise-until <time>',
    help: 'when the raise ends, such as 2030-01-01T00:00:00Z' },
  { field: 'group', flags: '--group <name>', none: 'none',
    help: 'share the budget and the concurrency of a group of the config, or none' },
  { field: 'lowBalance', flags: '--low-balance <usd>', none: 'default',
    help: 'webhooks are sent `balance.low` below this, in USD, or default' },
  { field: 'models', flags: '--model <name...>', none: 'all',
    help: 'restrict to these models; `all` lifts the restriction' },
  { field: 'allowFrom', flags: '--allow-from <network...>', none: 'all',
    help: 'allow only these, such as 10.0.0.0/8; `all` lifts the restriction' },
  { field: 'tags', flags: '--tags <names>', read: listOf,
    help: 'the tags that its requests may have, such as search,chat; `` for none' },
  { field: 'expiresAt', flags: '--expires <time>', none: 'never',
    help: 'when the key expires, such as 2030-01-01T00:00:00Z, or never' },
  { field: 'compatibility.sampling', flags: '--sampling <policy>', choices: ['strip', 'strict'],
    help: 'how to treat sampling parameters' },
  { field: 'compatibility.unknownFields', flags: '--unknown-fields <policy>', choices: ['reject', 'ignore'],
    help: 'how to treat unknown fields' },
  { field: 'compatibility.responsesDone', flags: '--responses-done <bool>', choices: truths,
    help: 'whether Responses streams end with [DONE]' },
  { field: 'compatibility.usageCost', flags: '--usage-cost <bool>', choices: truths,
    help: 'whether usage has the charge as cost' },
  { field: 'compatibility.chargeComment', flags: '--charge-comment <bool>', choices: truths,
    help: 'whether streams have the charge in a comment' },
];

/** Adds the options of all settings to a command. */
export function withSettings(command: Command): Command {
  for (const setting of keySettings) command.addOption(optionOf(setting));
  return command;
}

/** The option of a setting, whose attribute is its name among those that commander has read. */
export function optionOf({ flags, help, read, choices }: Omit<KeySetting, 'field'>): Option {
  const option = new Option(flags, help);
  if (choices !== undefined) return option.choices(choices);
  return read === undefined ? option : option.argParser(read);
}

import { Option } from 'commander';
import type { Command } from 'commander';
import type { DoctorOptions } from '../doctor/doctor.ts';

const help = `
Each upstream is called about ten times, as the gateway calls it, which costs a few hundred tokens.
One model of each upstream is asked; --model names another one.
Without a URL or a file, those of TEXTGATE_CONFIG are checked, or that of TEXTGATE_UPSTREAM_URL.
Without any of these, the gateway that runs here checks those of its config.

Exit codes: 0 without a fault (there may be warnings), 1 with a fault, 2 for wrong usage or a wrong
config, 3 if the check itself fails.
`;

/** The exit code for wrong usage. */
const wrongUsage = 2;

/** Adds `textgate doctor`. */
export function addDoctorCommand(program: Command): void {
  program
    .command('doctor')
    .description('check upstreams: connection, key, models, whole and streamed answers')
    .argument(
      '[url|file]',
      'the base URL of an upstream, version included, such as http://127.0.0.1:8000/v1; or a config file',
    )
    .option(
      '-c, --config <file>',
      'a config file, of which all upstreams are checked; default: TEXTGATE_CONFIG',
    )
    .option('-m, --model <name>', "the model to ask; default: that of the first route, or the list's first")
    .option('--key <key>', 'the API key for the URL (other users can read it while the command runs)')
    .option('--key-env <name>', 'the environment variable with the API key for the URL')
    .addOption(
      new Option(
        '--dialect <name>',
        'the protocol of the URL; default: chat, and responses if it is there',
      ).choices(['chat', 'responses', 'anthropic', 'gemini']),
    )
    .option('--timeout <duration>', 'how long one call may take; default: 30s')
    .option('--wrong-key', 'check, too, that a wrong key is refused')
    .option('--json', 'print JSON')
    .addHelpText('after', help)
    .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : wrongUsage))
    .action(async (url: string | undefined, options: DoctorOptions) =>
      (await import('../doctor/doctor.ts')).runDoctor(url, options),
    );
}

import type { Command } from 'commander';
import type { ImportOptions } from '../import/config/import-config.ts';
import { run } from '../output.ts';

/** The options of `import litellm`: some are for a config file, the others for keys. */
interface LitellmOptions extends ImportOptions {
  readonly keys?: string;
  readonly dryRun?: true;
}

const help = `
Of a config file, what is taken over, what is changed and what has no counterpart is printed, each with its reason. Secrets
are never written: the file has the names of environment variables. Nothing is called, and nothing is written unless the
result passes \`textgate config check\`.

Keys go to the gateway that TEXTGATE_ADMIN_URL names. Clients keep their secrets: LiteLLM stores the same hash. Keys that are
there already stay as they are, so the command can be repeated.

Exit codes: 0 where the config was written, or each key was taken or left out for its own reason; 1 otherwise.
`;

/** Adds `textgate import litellm`. */
export function addImportCommand(program: Command): void {
  program
    .command('import')
    .description('take over what another gateway has')
    .command('litellm')
    .description("write a config file from that of LiteLLM's proxy, or import its keys by their hashes")
    .argument('[config]', "LiteLLM's config file, such as litellm_config.yaml")
    .option('-o, --output <file>', 'the file to write', 'textgate.yaml')
    .option('--force', 'replace the file if it is there')
    .option('--keys <file>', 'a CSV of its table LiteLLM_VerificationToken, in place of a config file')
    .option('--dry-run', 'only say which keys would be imported')
    .addHelpText('after', help)
    .action((config: string | undefined, options: LitellmOptions) =>
      run(() => importLitellm(config, options)),
    );
}

async function importLitellm(
  config: string | undefined,
  { keys, dryRun, ...options }: LitellmOptions,
): Promise<void> {
  if ((config === undefined) === (keys === undefined))
    throw new Error('Give either a config file of LiteLLM, or a CSV of its keys with --keys.');
  if (keys !== undefined)
    return (await import('../import/keys/import-keys.ts')).importKeys(keys, dryRun === true);
  if (dryRun === true) throw new Error('--dry-run is for keys: name their CSV with --keys.');
  return (await import('../import/config/import-config.ts')).importConfig(config ?? '', options);
}

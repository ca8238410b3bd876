import type { Command } from 'commander';
import { run } from '../output.ts';

/** The options of `import litellm`. */
interface ImportOptions {
  readonly keys: string;
  readonly dryRun?: true;
}

const help = `
The keys go to the gateway that TEXTGATE_ADMIN_URL names. Clients keep their secrets: LiteLLM stores the same hash. Keys that
are there already stay as they are, so the command can be repeated.

Exit codes: 0 where each row was taken or left out for its own reason, 1 where one could not be taken.
`;

/** Adds `textgate import litellm`. */
export function addImportCommands(program: Command): void {
  program
    .command('import')
    .description('take over what another gateway has')
    .command('litellm')
    .description('import the keys of LiteLLM by their hashes')
    .requiredOption('--keys <file>', 'a CSV of its table LiteLLM_VerificationToken')
    .option('--dry-run', 'only say what would be imported')
    .addHelpText('after', help)
    .action(({ keys, dryRun }: ImportOptions) =>
      run(async () => (await import('../import/keys/import-keys.ts')).importKeys(keys, dryRun === true)),
    );
}

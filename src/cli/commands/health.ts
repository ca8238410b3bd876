import type { Command } from 'commander';
import { report } from '../output.ts';
import { configFileOf, configOption } from './arguments.ts';

/** Adds `textgate health`. */
export function addHealthCommand(program: Command): void {
  program
    .command('health')
    .description('ask a gateway whether it is alive; the exit code is 0 if it is, and else 1')
    .argument('[file]', "the gateway's config file, like --config")
    .option(
      configOption,
      "the gateway's config file, which names its admin listener; default: TEXTGATE_CONFIG",
    )
    .option('--ready', 'ask whether it can take requests now, instead of whether it is alive')
    .action((file: string | undefined, options: { config?: string; ready?: boolean }, command: Command) => {
      const config = file === undefined ? options.config : configFileOf(file, options, command);
      return report(async () => (await import('../health.ts')).checkHealth(config, options.ready === true));
    });
}

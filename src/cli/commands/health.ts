import type { Command } from 'commander';
import { report } from '../output.ts';

/** Adds `textgate health`. */
export function addHealthCommand(program: Command): void {
  program
    .command('health')
    .description('ask a gateway whether it is alive; the exit code is 0 if it is, and else 1')
    .option(
      '-c, --config <file>',
      "the gateway's config file, which names its admin listener; default: TEXTGATE_CONFIG",
    )
    .option('--ready', 'ask whether it can take requests now, instead of whether it is alive')
    .action(({ config, ready = false }: { config?: string; ready?: boolean }) =>
      report(async () => (await import('../health.ts')).checkHealth(config, ready)),
    );
}

import type { Command } from 'commander';
import { report, run } from '../output.ts';

const help = `
Keys: j, k and the arrows select a request; s sorts; / filters; c cancels it, after a question; p pauses;
q or Ctrl-C ends. Into a pipe or file it prints once.

Examples:
  textgate top
  textgate top --once
`;

/** Adds `textgate top`. */
export function addTopCommand(program: Command): void {
  program
    .command('top')
    .description('watch what runs now: requests, upstreams, throughput, endings')
    .option('--once', 'print it once and end')
    .option('--json', 'print it once, as JSON')
    .addHelpText('after', help)
    .action((options: { readonly once?: true; readonly json?: true }) => {
      const isWatched =
        options.once === undefined &&
        options.json === undefined &&
        process.stdout.isTTY &&
        process.stdin.isTTY &&
        process.env['TERM'] !== 'dumb';
      if (!isWatched)
        return report(async () => (await import('../top/print-status.ts')).printStatus(options));
      return run(async () => (await import('../top/watch-status.ts')).watchStatus());
    });
}

import type { Command } from 'commander';
import { printing, report, run } from '../output.ts';
import type { SayOptions } from '../say/say.ts';

/** Adds `textgate show|cancel`. */
export function addRequestCommands(program: Command): void {
  program
    .command('show <request>')
    .description('show one request: limits, hold, attempts with their causes, timings, tokens, charge')
    .option('--json', 'print JSON')
    .addHelpText('after', partsOfIds('the requests in progress and the newest 1,000 records'))
    .action(printing(async () => (await import('../requests/show-request.ts')).showRequest));
  program
    .command('cancel <request>')
    .description('cancel a request in progress')
    .option('--json', 'print JSON')
    .addHelpText('after', partsOfIds('the requests in progress'))
    .action(printing(async () => (await import('../requests/find-request.ts')).cancelRequest));
}

function partsOfIds(where: string): string {
  return `\n<request> is an id, or its beginning or end, of 4 digits or more, if only one of ${where} has it.\n`;
}

const topHelp = `
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
    .description('watch what runs now, or print it once: requests, upstreams, throughput, endings')
    .option('--once', 'print it once and end')
    .option('--json', 'print it once, as JSON')
    .addHelpText('after', topHelp)
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

const sayHelp = `
Without a question, or for -, it is read from standard input. The key is that of --key, TEXTGATE_API_KEY,
OPENAI_API_KEY, TEXTGATE_KEY or TEXTGATE_KEY_FILE; the address that of --url, TEXTGATE_URL, OPENAI_BASE_URL,
or TEXTGATE_HOST and TEXTGATE_PORT. The exit code is 0 for a whole answer, and else 1.

Examples:
  textgate say "Say hello"
  textgate say --responses --frames "Say hello"       what came, and when
  git diff | textgate say --model small               the question from a pipe
`;

/** Adds `textgate say`. */
export function addSayCommand(program: Command): void {
  program
    .command('say')
    .description('ask the gateway one question, as a client with a key, and print the answer as it comes')
    .argument('[question...]', 'the question; - for standard input')
    .option('--model <name>', 'the model; default: the first one that the key may use')
    .option('--key <key>', 'the key; on a command line, other users of the machine can read it')
    .option('--url <url>', "the gateway's address for clients")
    .option('--responses', 'in the protocol Responses, instead of Chat Completions')
    .option('--frames', 'print what comes instead of its text, each frame with its time in milliseconds')
    .addHelpText('after', sayHelp)
    .action((words: readonly string[], options: SayOptions) =>
      run(async () => (await import('../say/say.ts')).say(words.join(' '), options)),
    );
}

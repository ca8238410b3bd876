import type { Command } from 'commander';
import { run } from '../output.ts';
import type { SayOptions } from '../say/say.ts';

const help = `
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
    .addHelpText('after', help)
    .action((words: readonly string[], options: SayOptions) =>
      run(async () => (await import('../say/say.ts')).say(words.join(' '), options)),
    );
}

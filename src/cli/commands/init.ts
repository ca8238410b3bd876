import type { Command } from 'commander';
import { run } from '../output.ts';
import type { InitOptions } from '../init/init.ts';

const help = `
Without --upstream, upstreams are found: providers by the variables with their keys, such as OPENAI_API_KEY,
and Ollama, vLLM, llama.cpp, LM Studio and SGLang on their usual ports of this machine. On a terminal you are
asked which of them you want; without one, all of them are taken.

The first model of each upstream is checked as by \`textgate doctor\`, which costs a few hundred tokens.

Exit codes: 0 with a config that works, 1 where nothing is written, or a check finds a fault.
`;

/** Adds `textgate init`. */
export function addInitCommand(program: Command): void {
  program
    .command('init')
    .description('write a config file for the upstreams that are named or found, and check them')
    .option(
      '--upstream <url>',
      'the base URL of an upstream, version included, such as http://127.0.0.1:8000/v1',
    )
    .option(
      '--api-key-env <name>',
      'the environment variable with its API key: the file has its name, never the key',
    )
    .option(
      '-m, --model <name>',
      'a model to offer, by its name there; can be repeated; default: the newest of its list',
      (name: string, others: readonly string[]) => [...others, name],
      [],
    )
    .option(
      '--price <name>',
      'the price of models that the public list does not know at that address, by a name of the list, such as openai/gpt-4o-mini; default: they are free',
    )
    .option('-o, --output <file>', 'the file to write', 'textgate.yaml')
    .option('--force', 'replace the file if it is there')
    .addHelpText('after', help)
    .action((options: InitOptions) => run(async () => (await import('../init/init.ts')).init(options)));
}

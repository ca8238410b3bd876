import { Argument } from 'commander';
import type { Command } from 'commander';
import { report } from '../output.ts';

const usage = `
bash:  source <(textgate completion bash)                                    in ~/.bashrc
zsh:   source <(textgate completion zsh)                                     in ~/.zshrc, after compinit
fish:  textgate completion fish > ~/.config/fish/completions/textgate.fish
`;

/** Adds `textgate completion`. */
export function addCompletionCommand(program: Command): void {
  program
    .command('completion')
    .description('print a script that completes commands and options in a shell')
    .addArgument(new Argument('<shell>').choices(['bash', 'zsh', 'fish']))
    .addHelpText('after', usage)
    .action((shell: 'bash' | 'zsh' | 'fish') =>
      report(async () => (await import('../completion.ts')).completionScript(program, shell)),
    );
}

import type { Command } from 'commander';

type Shell = 'bash' | 'zsh' | 'fish';

/** A command and all that may follow it. */
interface Completed {
  /** The words from `textgate` to the command, such as `['keys', 'create']`. */
  readonly path: readonly string[];
  readonly description: string;
  readonly commands: readonly Completed[];
  /** The values of its argument, if there are only some. */
  readonly values: readonly string[];
  readonly options: readonly { readonly name: string; readonly description: string }[];
}

/** A script that completes the commands and options of a program in a shell. */
export function completionScript(program: Command, shell: Shell): string {
  const root = describeCommand(program, []);
  if (shell === 'fish') return fishScript(program.name(), root);
  // zsh reads bash's completions through its own adapter.
  const adapter = shell === 'zsh' ? 'autoload -U +X bashcompinit && bashcompinit\n' : '';
  return adapter + bashScript(program.name(), root);
}

function describeCommand(command: Command, path: readonly string[]): Completed {
  const help = command.createHelp();
  return {
    path,
    description: command.description(),
    commands: help
      .visibleCommands(command)
      .filter((child) => child.name() !== 'help')
      .map((child) => describeCommand(child, [...path, child.name()])),
    values: command.registeredArguments.flatMap(({ argChoices = [] }) => argChoices),
    options: help
      .visibleOptions(command)
      .flatMap(({ long, description }) => (long ? [{ name: long, description }] : [])),
  };
}

/** A command and the commands below it. */
function withDescendants(command: Completed): readonly Completed[] {
  return [command, ...command.commands.flatMap(withDescendants)];
}

function bashScript(program: string, root: Completed): string {
  const all = withDescendants(root);
  const name = `_${program}_completion`;
  const words = all.map(({ path, commands, values, options }) => {
    const below = commands.map((child) => child.path.at(-1));
    const next = [...below, ...values, ...options.map((option) => option.name)];
    return `    "${path.join(' ')}") words="${next.join(' ')}" ;;`;
  });
  const paths = all.filter(({ path }) => path.length > 0).map(({ path }) => `"${path.join(' ')}"`);
  return `${name}() {
  local command="" word words
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "\${command:+$command }$word" in
      ${paths.join('|')}) command="\${command:+$command }$word" ;;
    esac
  done
  case "$command" in
${words.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F ${name} ${program}`;
}

function fishScript(program: string, root: Completed): string {
  const lines = withDescendants(root).flatMap((command) => {
    const begin = `complete -c ${program} -n '${fishCondition(command)}'`;
    const commands = command.commands.map(
      ({ path, description }) => `${begin} -f -a ${path.at(-1)} -d ${fishQuote(description)}`,
    );
    const options = command.options.map(
      ({ name, description }) => `${begin} -l ${name.slice(2)} -d ${fishQuote(description)}`,
    );
    const values = command.values.map((value) => `${begin} -f -a ${value}`);
    return commands.concat(values, options);
  });
  return lines.join('\n');
}

/** True in fish after the command's words, and before any of the commands below it. */
function fishCondition({ path, commands }: Completed): string {
  if (path.length === 0) return '__fish_use_subcommand';
  const seen = path.map((word) => `__fish_seen_subcommand_from ${word}`);
  const below = commands.map((child) => child.path.at(-1)).join(' ');
  return [...seen, ...(below === '' ? [] : [`not __fish_seen_subcommand_from ${below}`])].join('; and ');
}

function fishQuote(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", String.raw`\'`)}'`;
}

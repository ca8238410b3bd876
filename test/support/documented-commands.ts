import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { createProgram } from '../../src/cli/program.ts';
import { pageBlocks } from './page-blocks.ts';
import { pageTexts } from './pages.ts';

const root = join(import.meta.dirname, '..', '..');
const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  scripts: Readonly<Record<string, string>>;
};

/** A command line of the documentation, with its page. */
interface DocumentedCommand {
  readonly page: string;
  readonly line: string;
}

/** A command that the documentation shows: it begins with one of our programs, or with a group of our own commands. */
const ours =
  /^(?:[A-Z_]+=\S+ )*(?:textgate|npm (?:run|start|test)|node [\w./-]+\.ts|keys|config (?:check|show|schema)|ledger)(?= |$)/;

/** All command lines in code of the pages, in a line of a block or in the middle of a sentence. */
export function documentedCommands(): readonly DocumentedCommand[] {
  const inBlocks = pageBlocks()
    .filter(({ language }) => language === 'sh')
    .flatMap(({ page, text }) => text.split('\n').map((line) => ({ page, line })));
  const inProse = pageTexts().flatMap(([page, text]) =>
    [...text.replaceAll(/^```[^]*?^```/gm, '').matchAll(/`([^`\n]+)`/g)].map(([, line = '']) => ({
      page,
      line,
    })),
  );
  return [...inBlocks, ...inProse]
    .flatMap(({ page, line }) => line.split(/ && | \| /).map((part) => ({ page, line: part })))
    .map(({ page, line }) => ({
      page,
      line: line.replace(/\s+#.*$/, '').replace(/^docker .*?(?=textgate [a-z])/, ''),
    }))
    .filter(({ line }) => ours.test(line));
}

/** What is wrong with a command line; `null` if it can be typed as it stands. */
export function commandFault(line: string): string | null {
  // Without assignments before the program, and without what npm takes for itself.
  const words = (line.replace(/ > .*$/, '').match(/(?:[^\s"']|"[^"]*"|'[^']*')+/g) ?? []).filter(
    (word) => !/^[A-Z_]+=|^(?:-s|--silent)$/.test(word),
  );
  const [program = '', first = '', name = '', ...rest] = words;
  if (program === 'textgate') return textgateFault(words.slice(1));
  if (program === 'node')
    return existsSync(join(root, first)) || !first.includes('/') ? null : `no file ${first}`;
  if (program !== 'npm') return textgateFault(words);
  if (first === 'test') return null;
  if (first === 'start') return textgateFault(['serve', ...rest]);
  if (scripts[name] === undefined) return `no script ${name}`;
  return name === 'textgate' && rest.length > 0 ? textgateFault(rest.slice(1)) : null;
}

function textgateFault(words: readonly string[]): string | null {
  let command: Command = createProgram();
  let operands = 0;
  const left = words[0]?.startsWith('-') === true ? ['serve', ...words] : [...words];
  while (left.length > 0) {
    const word = left.shift() ?? '';
    // The shell takes it and what follows.
    if (word === '<') break;
    // A dash alone is an argument: the standard input.
    if (word.startsWith('-') && word !== '-') {
      const [flag = '', inline] = word.split('=');
      if (flag === '--help' || flag === '--version') continue;
      const option = command.options.find(({ long, short }) => long === flag || short === flag);
      if (option === undefined) return `${command.name()} has no option ${flag}`;
      // A sentence may name an option without its value.
      if ((option.required || option.optional) && inline === undefined) left.shift();
      continue;
    }
    const inner = command.commands.find((each) => each.name() === word);
    if (inner !== undefined && operands === 0) command = inner;
    else if (command.commands.length > 0 && command.registeredArguments.length === 0)
      return `${command.name()} has no command ${word}`;
    else operands++;
  }
  const { registeredArguments: taken } = command;
  return operands > taken.length && taken.at(-1)?.variadic !== true
    ? `${command.name()} takes ${taken.length} arguments`
    : null;
}

import type { Environment } from '../../../config/environment.ts';
import { ConfigError, loadConfigFile } from '../../../config/load.ts';
import { escapeControlCharacters } from '../../../shared/control-characters.ts';
import { count } from '../../../shared/count.ts';
import { maxColumns, wrap } from '../../output.ts';
import { command } from '../../serve/greeting.ts';
import { refuseOutput, shellWord, writeConfigFile } from '../../write-config-file.ts';
import { convert } from './convert.ts';
import type { Imported } from './convert.ts';
import type { Note, Notes } from './notes.ts';
import { readLitellm } from './read-litellm.ts';
import { variablesIn } from './references.ts';
import { writeImport } from './write-import.ts';

/** The options of `textgate import litellm`, as commander names them. */
export interface ImportOptions {
  readonly output: string;
  readonly force?: boolean;
}

/** Writes a config file from that of LiteLLM's proxy, and prints what became of each setting. Throws where none is written. */
export function importConfig(file: string, { output, force = false }: ImportOptions): Promise<void> {
  refuseOutput(output, force);
  const imported = convert(readLitellm(file));
  const { models, discovery, upstreams, notes } = imported;
  const report = writeReport(notes);
  if (models.length === 0 && discovery === null)
    throw new Error(`no model of ${file} has a counterpart, and nothing is written\n${report}`);
  const text = writeImport(imported);
  // The text itself has names of variables in comments, too.
  const variables = [...variablesIn(JSON.stringify([...upstreams.values(), ...models]))];
  check(output, text, placeholdersFor(variables, upstreams));
  writeConfigFile(output, text, force);
  const name = escapeControlCharacters(output);
  const offered = discovery === null ? count(models.length, 'model') : 'all models';
  const first = `${name} is written: ${offered} at ${count(upstreams.size, 'upstream')}`;
  console.log([first, report, nextSteps(escapeControlCharacters(shellWord(output)), variables)].join('\n\n'));
  return Promise.resolve();
}

/** Values for the variables of a config: it is checked as it is written, whatever variables are set here. */
function placeholdersFor(variables: readonly string[], upstreams: Imported['upstreams']): Environment {
  const addresses = [...upstreams.values()].flatMap(({ url }) => /^\$\{(\w+)/.exec(url)?.[1] ?? []);
  return Object.fromEntries([
    ...variables.map((name) => [name, '1']),
    ...addresses.map((name) => [name, 'http://address.invalid']),
  ]);
}

/** Throws where a config can't be used, without the lines of a file that is not there. */
function check(output: string, text: string, environment: Environment): void {
  try {
    loadConfigFile('', environment, {}, text);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const problems = error.problems.map((problem) =>
      problem.replace(/^line \d+(?:, column \d+)?: /, '').replace(/\n.*/s, ''),
    );
    throw new ConfigError(`nothing is written: the new ${output}`, problems);
  }
}

const titles = [
  ['Taken', 'taken'],
  ['Changed', 'changed'],
  ['No counterpart', 'none'],
] as const;

/** The most models that are named with a setting. */
const maxNamed = 3;

/** The settings in three parts: what is taken, what is changed and how, and what has no counterpart and why. */
function writeReport(notes: Notes): string {
  const parts = titles.map(([title, result]) => {
    const lines = notes.of(result).flatMap(writeNote);
    return [title, ...(lines.length === 0 ? ['  nothing'] : lines)].join('\n');
  });
  return parts.join('\n\n');
}

function writeNote({ settings, text, models }: Note): readonly string[] {
  const named = [...models].slice(0, maxNamed).join(', ');
  const more = models.size > maxNamed ? ` and ${models.size - maxNamed} more` : '';
  const of = models.size === 0 ? '' : ` (${named}${more})`;
  const whole = escapeControlCharacters(`${[...settings].join(', ')}: ${text}${of}`);
  return wrap(whole, maxColumns - 4).map((line, index) => `  ${index === 0 ? '' : '  '}${line}`);
}

/** The variables that a config needs, and the commands that come next. */
function nextSteps(output: string, variables: readonly string[]): string {
  return [
    ...(variables.length === 0 ? [] : [`The gateway reads ${variables.join(', ')}.`, '']),
    'Next:',
    `  ${command} config check ${output}`,
    `  ${command} doctor ${output}`,
    `  ${command} serve ${output}`,
  ].join('\n');
}

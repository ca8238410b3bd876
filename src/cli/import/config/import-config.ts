import { loadConfigFile } from '../../../config/load.ts';
import { escapeControlCharacters } from '../../../shared/control-characters.ts';
import { count } from '../../../shared/count.ts';
import { maxColumns, wrap } from '../../output.ts';
import { command } from '../../serve/greeting.ts';
import { refuseOutput, shellWord, writeConfigFile } from '../../write-config-file.ts';
import { convert } from './convert.ts';
import type { Note, Notes, Result } from './notes.ts';
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
  loadConfigFile(output, placeholdersFor(text), {}, text);
  writeConfigFile(output, text, force);
  const name = escapeControlCharacters(output);
  const offered = discovery === null ? count(models.length, 'model') : 'all models';
  const first = `${name} is written: ${offered} at ${count(upstreams.size, 'upstream')}`;
  console.log([first, report, nextSteps(escapeControlCharacters(shellWord(output)), text)].join('\n\n'));
  return Promise.resolve();
}

/** Values for the variables of a config: it is checked as it is written, whatever variables are set here. */
function placeholdersFor(text: string): Readonly<Record<string, string>> {
  const address = new Set([...text.matchAll(/url: "\$\{(\w+)/g)].map(([, name = '']) => name));
  return Object.fromEntries(
    [...variablesIn(text)].map((name) => [name, address.has(name) ? 'http://address.invalid' : '1']),
  );
}

const titles: Readonly<Record<Result, string>> = {
  taken: 'Taken',
  changed: 'Changed',
  none: 'No counterpart',
};

/** The most models that are named with a setting. */
const maxNamed = 3;

/** The settings in three parts: what is taken, what is changed and how, and what has no counterpart and why. */
function writeReport(notes: Notes): string {
  const parts = (['taken', 'changed', 'none'] as const).map((result) => {
    const lines = notes.of(result).flatMap(writeNote);
    return [titles[result], ...(lines.length === 0 ? ['  nothing'] : lines)].join('\n');
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
function nextSteps(output: string, text: string): string {
  const variables = [...variablesIn(text)].filter((name) => name !== 'NAME');
  return [
    ...(variables.length === 0 ? [] : [`The gateway reads ${variables.join(', ')}.`, '']),
    'Next:',
    `  ${command} config check ${output}`,
    `  ${command} doctor ${output}`,
    `  ${command} serve ${output}`,
  ].join('\n');
}

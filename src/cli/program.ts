import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { addBackupCommand } from './backup.ts';
import { addConfigCommands } from './config.ts';
import { addDoctorCommand } from './doctor.ts';
import { addKeysCommands } from './keys.ts';
import { addRecordsCommands } from './records.ts';
import { addServeCommand } from './serve.ts';

/** The `textgate` command. */
export function createProgram(): Command {
  const program = new Command('textgate')
    .description('A text-only LLM gateway: Chat Completions and Responses in front of any provider.')
    .version(readVersion())
    .showHelpAfterError('(see --help)')
    .showSuggestionAfterError();
  addServeCommand(program);
  addConfigCommands(program);
  addDoctorCommand(program);
  addKeysCommands(program);
  addRecordsCommands(program);
  addBackupCommand(program);
  return program;
}

/** The package's version. Its package.json is two folders above this file, in a checkout and in the package. */
function readVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

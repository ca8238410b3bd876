import { Command } from 'commander';
import { addKeysCommands } from './keys.ts';
import { addRecordsCommands } from './records.ts';
import { addServeCommand } from './serve.ts';

/** The `textgate` command. */
export function createProgram(): Command {
  const program = new Command('textgate')
    .description('A text-only LLM gateway: Chat Completions and Responses in front of any provider.')
    .showHelpAfterError()
    .showSuggestionAfterError();
  addServeCommand(program);
  addKeysCommands(program);
  addRecordsCommands(program);
  return program;
}

import { Command } from 'commander';
import { readVersion } from '../shared/version.ts';
import { addAuditCommand } from './commands/audit.ts';
import { addBackupCommand, addMigrateCommand, addRestoreCommand } from './commands/database.ts';
import { addCompletionCommand } from './commands/completion.ts';
import {
  addConfigCommands,
  addDoctorCommand,
  addHealthCommand,
  addServeCommand,
} from './commands/gateway.ts';
import { addImportCommand } from './commands/import.ts';
import { addInitCommand } from './commands/init.ts';
import { addKeysCommands } from './commands/keys.ts';
import { addPricesCommand } from './commands/prices.ts';
import {
  addLedgerCommand,
  addReconcileCommand,
  addRecordsCommands,
  addUsageCommand,
} from './commands/records.ts';
import { addRequestCommands, addSayCommand, addTopCommand } from './commands/requests.ts';
import { addWebhooksCommands } from './commands/webhooks.ts';
import { addStatementCommands } from './commands/statement.ts';
import { forTerminal } from './output.ts';
import { isServing } from './early-signals.ts';

const examples = `
Examples:
  textgate                                          with a built-in demo instead of a provider
  textgate --upstream http://127.0.0.1:8000/v1      in front of a server; \`serve\` may be left out
  textgate serve --config textgate.yaml
`;

/** Runs `textgate` with its arguments. The process's exit code says how it ended. */
export async function runProgram(args: readonly string[]): Promise<void> {
  if (!isServing(args)) return void (await createProgram().parseAsync(args, { from: 'user' }));
  // Without the other commands, whose descriptions take 15 ms to put together.
  const program = createBareProgram();
  addServeCommand(program);
  await program.parseAsync(args[0] === 'serve' ? args : ['serve', ...args], { from: 'user' });
}

function createBareProgram(): Command {
  return new Command('textgate')
    .description('A text-only LLM gateway: Chat Completions and Responses in front of any provider.')
    .version(readVersion())
    .configureOutput({ outputError: (text, write) => write(`${forTerminal(text.trimEnd())}\n`) })
    .showHelpAfterError('(see --help)')
    .showSuggestionAfterError()
    .addHelpText('after', examples);
}

/** All commands, under the titles that the help text has for them. */
const groups: Readonly<Record<string, readonly ((program: Command) => void)[]>> = {
  'Gateway:': [
    addInitCommand,
    addImportCommand,
    addServeCommand,
    addConfigCommands,
    addDoctorCommand,
    addHealthCommand,
  ],
  'Requests:': [addTopCommand, addRequestCommands, addRecordsCommands, addUsageCommand, addSayCommand],
  'Keys and money:': [
    addKeysCommands,
    addPricesCommand,
    addReconcileCommand,
    addStatementCommands,
    addLedgerCommand,
    addAuditCommand,
  ],
  'Database and events:': [addBackupCommand, addRestoreCommand, addMigrateCommand, addWebhooksCommands],
  'This command:': [addCompletionCommand],
};

/** The `textgate` command. Its actions load their code when they run, so that `--help` and `--version` are quick. */
export function createProgram(): Command {
  const program = createBareProgram();
  for (const [title, commands] of Object.entries(groups)) {
    program.commandsGroup(title);
    for (const add of commands) add(program);
  }
  program.helpCommand(true);
  return program;
}

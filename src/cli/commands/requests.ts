import type { Command } from 'commander';
import { report } from '../output.ts';
import type { Json } from '../output.ts';

/** Adds `textgate show|in-flight|cancel`. */
export function addRequestCommands(program: Command): void {
  program
    .command('show <request>')
    .description('show one request: limits, hold, attempts with their causes, timings, tokens, charge')
    .option('--json', 'print JSON')
    .addHelpText('after', partsOfIds('the requests in progress and the newest 1,000 records'))
    .action((request: string, options: Json) =>
      report(async () => (await import('../requests/show-request.ts')).showRequest(request, options)),
    );
  program
    .command('in-flight')
    .description('list the requests in progress, oldest first')
    .option('--json', 'print JSON')
    .action((options: Json) =>
      report(async () => (await import('../requests/in-flight.ts')).listInFlight(options)),
    );
  program
    .command('cancel <request>')
    .description('cancel a request in progress')
    .option('--json', 'print JSON')
    .addHelpText('after', partsOfIds('the requests in progress'))
    .action((request: string, options: Json) =>
      report(async () => (await import('../requests/in-flight.ts')).cancelRequest(request, options)),
    );
}

function partsOfIds(where: string): string {
  return `\n<request> is an id, or its beginning or end, of 4 digits or more, if only one of ${where} has it.\n`;
}

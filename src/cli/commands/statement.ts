import type { Command } from 'commander';
import { printing } from '../output.ts';

const verifyHelp = `
Exits with 0 if nothing is wrong, with 1 if anything is, and with 2 if nothing is wrong but the
signature was not checked, without --keys. Several files are also held against each other.

Examples:
  textgate statement verify january.txt --keys https://llm.example.com/v1/statement-keys
  textgate statement verify january.txt february.txt --keys keys.json --key key_AbC123dEf456
`;

/** Adds `textgate statement get|verify`. */
export function addStatementCommands(program: Command): void {
  const statement = program
    .command('statement')
    .description('signed statements of what a key paid in and was charged');
  statement
    .command('get [key]')
    .description('write the statement of a key, by its id, or a name that only one key has')
    .option('--group <name>', 'those of all keys of a group instead, into the folder of --output')
    .option('--from <time>', 'only rows from this time on, such as 2030-01-01')
    .option('--to <time>', 'only rows before this time')
    .option('-o, --output <file>', 'write to this file; further parts of a long one get a number')
    .action(printing(async () => (await import('../statement.ts')).getStatements));
  statement
    .command('verify <file...>')
    .description('check statements without a gateway, and say what was changed')
    .option('--keys <file|url>', "the service's public keys: GET /v1/statement-keys, or a PEM")
    .option('--key <id>', 'the id of the key whose statements they must be')
    .option('--json', 'print JSON')
    .addHelpText('after', verifyHelp)
    .action(printing(async () => (await import('../statement.ts')).checkFiles));
}

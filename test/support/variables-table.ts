import { commandVariables, serveVariables } from '../../src/config/environment.ts';

/** The documentation's tables of variables: those of `serve`, and those of the commands for operators. */
export function writeVariableTables(): string {
  const table = (variables: typeof serveVariables): string =>
    [
      '| variable | what it sets |',
      '|---|---|',
      ...variables.map(({ name, meaning }) => `| \`${name}\` | ${meaning} |`),
    ].join('\n');
  return `**\`textgate serve\`**\n\n${table(serveVariables)}\n\n**Commands for operators, beside those that name its listener, its token and its config**\n\n${table(commandVariables)}`;
}

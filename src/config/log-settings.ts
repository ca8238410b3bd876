import { readVariable } from './environment.ts';
import type { Environment } from './environment.ts';
import { ConfigError } from './load.ts';

const levels = ['silent', 'warn', 'info', 'debug'] as const;
const formats = ['json', 'text'] as const;

/**
 * What is logged, and how, by `TEXTGATE_LOG` and `TEXTGATE_LOG_FORMAT`; without a format, by whether standard output is a
 * terminal. Throws `ConfigError`.
 */
export function readLogSettings(environment: Environment) {
  const problems: string[] = [];
  const choose = <Choice extends string>(name: string, choices: readonly Choice[]): Choice | undefined => {
    const written = readVariable(environment, name)?.toLowerCase();
    const chosen = choices.find((choice) => choice === written);
    if (written !== undefined && chosen === undefined)
      problems.push(`${name}: '${written}' is not one of ${choices.join(', ')}`);
    return chosen;
  };
  const logLevel = choose('TEXTGATE_LOG', levels) ?? 'info';
  const logFormat = choose('TEXTGATE_LOG_FORMAT', formats);
  if (problems.length > 0) throw new ConfigError('the environment', problems);
  return { logLevel, ...(logFormat === undefined ? {} : { logFormat }) };
}

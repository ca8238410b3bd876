import type { Environment } from '../../config/environment.ts';

/** Options that npm takes for its own if no `--` is before them. */
const options = ['config', 'upstream', 'upstream-key-env', 'host', 'port', 'admin-host', 'admin-port'];

/** How options are given through npm. */
export const npmAdvice = 'with npm, write -- before options: npm start -- --port 8090';

/** The options that npm took. It passes them on as variables, and their values, if written behind a blank, as arguments. */
export function takenByNpm(environment: Environment): readonly string[] {
  if (environment['npm_lifecycle_event'] === undefined) return [];
  return options.filter((name) => environment[`npm_config_${name.replaceAll('-', '_')}`] !== undefined);
}

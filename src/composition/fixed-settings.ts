import { isDeepStrictEqual } from 'node:util';
import type { Config } from '../config/schema/schema.ts';

/** Settings of ports, connections, processes and files, which only a restart changes. */
const fixedSettings = [
  ['server', ['host', 'port', 'socket', 'socketMode', 'tls', 'basePath', 'workers', 'maxHead', 'timeouts']],
  ['admin', ['host', 'port', 'token', 'tokenFolder']],
  ['resume', ['nodes']],
  ['storage', ['url', 'durability', 'allowMigrated', 'spool']],
] as const;

/** The settings that differ from those of the start and need a restart, such as `server.port`. */
export function changedFixedSettings(before: Config, after: Config): readonly string[] {
  return fixedSettings.flatMap(([section, names]) => {
    const [old, next]: readonly Readonly<Record<string, unknown>>[] = [before[section], after[section]];
    return names
      .filter((name) => !isDeepStrictEqual(old?.[name], next?.[name]))
      .map((name) => `${section}.${name}`);
  });
}

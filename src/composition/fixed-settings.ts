import { isDeepStrictEqual } from 'node:util';
import type { Config } from '../config/schema/schema.ts';
import { fieldsInForce } from '../domain/audit/differences.ts';
import type { Fields } from '../domain/audit/differences.ts';

/** Settings of ports, connections, processes and files, which only a restart changes. */
const fixedSettings = [
  ['server', ['host', 'port', 'socket', 'socketMode', 'tls', 'basePath', 'workers', 'maxHead', 'timeouts']],
  ['admin', ['host', 'port', 'token', 'tokenFolder']],
  ['resume', ['nodes']],
  ['storage', ['url', 'durability', 'allowMigrated', 'spool']],
] as const;

/** The audited settings of a reload, where what only a restart changes waits for it, beside those of the start. */
export function settingsInForce(start: Fields, next: Fields): Fields {
  return fieldsInForce(start, next, isFixed);
}

/** Whether only a restart changes a setting, by its path, such as `server.timeouts.head`. */
function isFixed(path: string): boolean {
  const [section, name] = path.split('.');
  return fixedSettings.some(([one, names]) => one === section && names.some((each) => each === name));
}

/** The settings that differ from those of the start and need a restart, such as `server.port`. */
export function changedFixedSettings(before: Config, after: Config): readonly string[] {
  return fixedSettings.flatMap(([section, names]) => {
    const [old, next]: readonly Readonly<Record<string, unknown>>[] = [before[section], after[section]];
    return names
      .filter((name) => !isDeepStrictEqual(old?.[name], next?.[name]))
      .map((name) => `${section}.${name}`);
  });
}

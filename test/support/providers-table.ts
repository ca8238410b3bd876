import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import { loadConfigFile } from '../../src/config/load.ts';
import type { ConfigInput } from '../../src/index.ts';

const page = join(import.meta.dirname, '..', '..', 'docs', 'operators', 'upstreams.md');

/** An upstream as written in a config file. */
export type UpstreamInput = ConfigInput['upstreams'][string];

/** The table of providers in docs/operators/upstreams.md: the config line of each, by provider name. */
export function readProvidersTable(): ReadonlyMap<string, string> {
  const [, section = ''] = readFileSync(page, 'utf8').split('\n## Providers\n');
  const [table = ''] = section.split('\n## ');
  const rows = [...table.matchAll(/^\| ([^|]+) \| `(\{[^|]+\})` \| [^|]+ \|$/gm)];
  return new Map(rows.map(([, name = '', line = '']) => [name, line]));
}

/**
 * Checks a line like a config file, and returns it with its `${NAME}` replaced by `key of NAME`, and its command by one that
 * prints `key of <command>`.
 */
export function loadUpstream(line: string): UpstreamInput {
  const folder = mkdtempSync(join(tmpdir(), 'textgate-providers-'));
  const file = join(folder, 'textgate.yaml');
  const names = [...line.matchAll(/\$\{(\w+)\}/g)].map(([, name = '']) => name);
  try {
    writeFileSync(file, `upstreams: { mine: ${line} }\nmodels: { from: mine }\n`);
    const { upstreams } = loadConfigFile(
      file,
      Object.fromEntries(names.map((name) => [name, `key of ${name}`])),
    );
    const { apiKey } = upstreams['mine'] ?? {};
    if (typeof apiKey === 'object' && 'command' in apiKey)
      return { ...(parse(line) as UpstreamInput), apiKey: { command: printing(apiKey.command) } };
    return { ...(parse(line) as UpstreamInput), ...(apiKey === undefined ? {} : { apiKey }) };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function printing(command: readonly string[]): string[] {
  return [process.execPath, '-p', JSON.stringify(`key of ${command.join(' ')}`)];
}

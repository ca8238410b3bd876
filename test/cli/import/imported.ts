import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { runCommand } from '../../support/run-command.ts';
import { makeTemporaryFolder } from '../../support/temporary-folder.ts';

/** A config that an import has written, as far as tests look at it. */
interface WrittenConfig {
  readonly compatibility?: object;
  readonly upstreams: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly models: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

/** Imports the text of a config of LiteLLM; returns what is printed, and the config that is written. */
export async function importText(text: string | Uint8Array) {
  const folder = makeTemporaryFolder();
  writeFileSync(join(folder, 'litellm.yaml'), text);
  const { code, stdout, stderr } = await runCommand(['import', 'litellm', 'litellm.yaml'], folder);
  const file = join(folder, 'textgate.yaml');
  const written = existsSync(file) ? readFileSync(file, 'utf8') : '';
  return { folder, code, stdout, stderr, written, config: parse(written) as WrittenConfig };
}

/** The same for entries of `model_list`, as YAML on one line each, with further sections behind them. */
export function importEntries(entries: readonly string[], sections = '') {
  return importText(`model_list:\n${entries.map((each) => `  - ${each}\n`).join('')}${sections}`);
}

/** An entry of `model_list` with parameters as they stand in braces, and further settings beside them. */
export function entry(name: string, params: string, more = ''): string {
  return `{ model_name: ${JSON.stringify(name)}, litellm_params: { ${params} }${more === '' ? '' : `, ${more}`} }`;
}

/** The lines of a part of the report, without those that go on. */
export function partOf(stdout: string, title: 'Taken' | 'Changed' | 'No counterpart'): string {
  const [, part = ''] = new RegExp(`^${title}\n((?: .*\n)+)`, 'm').exec(stdout) ?? [];
  return part.replaceAll(/\n {4}/g, ' ');
}

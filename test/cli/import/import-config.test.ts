import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { describe, expect, test } from 'vitest';
import { runCommand } from '../../support/run-command.ts';
import { makeTemporaryFolder } from '../../support/temporary-folder.ts';

/** Imports a config and returns what is printed, and the config that is written. */
async function importText(text: string, ...options: readonly string[]) {
  const folder = makeTemporaryFolder();
  writeFileSync(join(folder, 'litellm.yaml'), text);
  const { code, stdout, stderr } = await runCommand(
    ['import', 'litellm', 'litellm.yaml', ...options],
    folder,
  );
  const file = join(folder, 'textgate.yaml');
  const written = existsSync(file) ? readFileSync(file, 'utf8') : '';
  return { folder, code, stdout, stderr, written, config: parse(written) as unknown };
}

const small = `
model_list:
  - model_name: chat
    litellm_params: { model: openai/gpt-4o-mini, api_key: os.environ/TEAM_KEY }
`;

describe('textgate import litellm', () => {
  test('writes a config that passes the check, and names the variable of the key', async () => {
    const { folder, code, stdout, stderr, config } = await importText(small);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/^textgate\.yaml is written: 1 model at 1 upstream\n/);
    expect(stdout).toContain('The gateway reads TEAM_KEY.');
    expect(config).toMatchObject({
      upstreams: { openai: { url: 'https://api.openai.com/v1', apiKey: '${TEAM_KEY}' } },
      models: { chat: { routes: [{ upstream: 'openai', model: 'gpt-4o-mini' }], price: 'list' } },
    });
    const checked = await runCommand(['config', 'check', 'textgate.yaml'], folder, { TEAM_KEY: 'k' });
    expect(checked.stdout).toBe('textgate.yaml is valid\n');
  });

  test('never replaces a file, unless it is told to, and leaves no other one behind', async () => {
    const folder = makeTemporaryFolder();
    writeFileSync(join(folder, 'litellm.yaml'), small);
    writeFileSync(join(folder, 'textgate.yaml'), 'mine');
    const refused = await runCommand(['import', 'litellm', 'litellm.yaml'], folder);
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(readFileSync(join(folder, 'textgate.yaml'), 'utf8')).toBe('mine');
    const forced = await runCommand(['import', 'litellm', 'litellm.yaml', '--force'], folder);
    expect(forced.code).toBe(0);
    expect(readFileSync(join(folder, 'textgate.yaml'), 'utf8')).toContain('gpt-4o-mini');
    expect(readdirSync(folder).toSorted()).toEqual(['litellm.yaml', 'textgate.yaml']);
  });
});

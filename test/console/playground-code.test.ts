import { execFile, spawnSync } from 'node:child_process';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { writeCode } from '../../src/console/views/try/code.ts';
import type { Language } from '../../src/console/views/try/code.ts';
import type { Protocol, TryRequest } from '../../src/console/views/try/request.ts';
import { plantPrompts } from '../support/canaries.ts';
import { sayTexts } from '../support/scripted-upstream.ts';
import { openStage } from '../support/stage.ts';

const run = promisify(execFile);
const { upstream, gateway } = await openStage();
const env = { ...process.env, TEXTGATE_URL: gateway.url, TEXTGATE_KEY: gateway.key };

/** Characters that mean something in a shell, in JSON or in the two languages. */
const question = 'it\'s "quoted" \\ $HOME `x` ${y} {z} \n two lines, é, 🙂';

function requestOf(protocol: Protocol, isStreamed: boolean): TryRequest {
  plantPrompts({ question });
  return { keyId: null, model: 'small', protocol, isStreamed, system: 'be "brief"', question, cap: '7' };
}

const kinds = (['chat', 'responses'] as const).flatMap((protocol) =>
  [true, false].map((isStreamed) => [protocol, isStreamed ? 'streamed' : 'whole', isStreamed] as const),
);

const pythonAbsence =
  spawnSync('python3', ['--version']).status === 0 ? null : 'skipped: there is no python3';

/** Prints all strings of a Python program, which is parsed and not run: its SDK may not be installed. */
const listStrings = `
import ast, json, sys
constants = [node.value for node in ast.walk(ast.parse(sys.argv[1])) if isinstance(node, ast.Constant)]
print(json.dumps([value for value in constants if isinstance(value, str)]))`;

/** Runs code as its reader would, and returns what it prints. */
async function runCode(code: string, language: Language): Promise<string> {
  if (language === 'curl')
    return (await run('sh', ['-c', code.replace('curl ', 'curl -s ')], { env })).stdout;
  const folder = await mkdtemp(join(tmpdir(), 'textgate-playground-'));
  try {
    await symlink(join(import.meta.dirname, '../../node_modules'), join(folder, 'node_modules'));
    const file = join(folder, 'code.mts');
    await writeFile(file, code);
    return (await run(process.execPath, ['--no-warnings', file], { env })).stdout;
  } finally {
    await rm(folder, { recursive: true });
  }
}

describe.each(kinds)('the code of a request of %s, %s', (protocol, _, isStreamed) => {
  test.each(['curl', 'typescript'] as const)(
    'as %s asks what was typed, and prints the answer',
    async (language) => {
      upstream.play(sayTexts(['hello', ' there']));
      const printed = await runCode(writeCode(requestOf(protocol, isStreamed), language), language);
      // The SDK prints the text alone.
      expect(printed).toMatch(language === 'curl' ? /hello/ : /^hello there\n?$/);
      expect(upstream.seen.at(-1)?.body).toContain(JSON.stringify(question).slice(1, -1));
    },
  );

  test.skipIf(pythonAbsence !== null)(
    `as Python has what was typed (${pythonAbsence ?? 'python3'})`,
    async () => {
      const code = writeCode(requestOf(protocol, isStreamed), 'python');
      const { stdout } = await run('python3', ['-c', listStrings, code]);
      expect(JSON.parse(stdout)).toEqual(expect.arrayContaining([question, 'be "brief"', 'small']));
    },
  );
});

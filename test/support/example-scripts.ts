import { execFile } from 'node:child_process';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'vitest';
import { blocksOf } from './page-blocks.ts';
import { chatFrames, cut, sayTexts, sendStream } from './scripted-upstream.ts';
import { openStage } from './stage.ts';
import type { RunningStage } from './stage.ts';
import { makeTemporaryFolder } from './temporary-folder.ts';

const run = promisify(execFile);
export const examplesPage = 'docs/callers/examples.md';

/** What each script of the page prints, by the name in its first line. */
export const printed: Readonly<Record<string, string | RegExp>> = {
  'openai-chat.mjs': 'Hello there.\nHello there.',
  'openai-responses.mjs': 'Hello there.\nHello there.',
  'openai-failures.mjs': /^incomplete: one, (two )?upstream_truncated\nupstream_truncated 0\.\d+\n$/,
  'openai-refusal.mjs': '400 unsupported_value response_format.type\n',
  'openai-tags.mjs': 'search 1 7 0.000025\n',
  'vercel.mjs': /^Hello there\.\none, (two)?\nincomplete\n$/,
  'langchain.mjs': 'Hello there.\nHello there.',
  'openai_chat.py': 'Hello there.\nHello there.',
  'openai_failures.py': /^incomplete: one, (two )?upstream_truncated\n$/,
};

/** The name in a script's first line. */
const nameOf = (text: string): string => /^(?:\/\/|#) (\S+)\n/.exec(text)?.[1] ?? '';

/** The scripts of the page with their names. */
export const exampleScripts = blocksOf(examplesPage, 'js', 'python').map(
  ({ text }) => [nameOf(text), text] as const,
);

/** The scripts of other libraries than that of OpenAI: their packages are in `test/outside`. */
export const isOutside = (name: string): boolean => /^(?:vercel|langchain)\./.test(name);

/** A gateway that answers the examples, and what runs them. */
export interface ExampleStage extends RunningStage {
  /** Runs a program with the variables of the examples; returns what it prints. */
  readonly outputOf: (program: string, ...args: readonly string[]) => Promise<string>;
  /** Runs a script of the page with the packages of a folder, and expects what it prints. */
  readonly expectToRun: (program: string, name: string, text: string, packages: string) => Promise<void>;
}

/** Opens a gateway whose upstream answers each question but the one that is answered by a stream that breaks off. */
export async function openExampleStage(): Promise<ExampleStage> {
  const stage = await openStage({ price: { input: '1', output: '2' } });
  const { secret: taggedKey } = await stage.gateway.gateway.createKey('test', { tags: ['search'] });
  const say = sayTexts(['Hello ', 'there.']);
  stage.upstream.play(async (response, request) => {
    if (!request.body.includes('Count to ten.')) return say(response, request);
    sendStream(response, chatFrames(['one, ', 'two']).slice(0, 3));
    await new Promise((resolve) => setImmediate(resolve));
    return cut(response, 'fin');
  });
  const environment = {
    PATH: process.env['PATH'],
    OPENAI_BASE_URL: `${stage.gateway.url}/v1`,
    OPENAI_API_KEY: taggedKey,
  };
  const outputOf = async (program: string, ...args: readonly string[]): Promise<string> => {
    const { stdout } = await run(program, [...args], { env: environment, timeout: 100_000 });
    return stdout;
  };
  return {
    ...stage,
    outputOf,
    async expectToRun(program, name, text, packages) {
      const folder = makeTemporaryFolder();
      symlinkSync(packages, join(folder, 'node_modules'));
      const file = join(folder, name);
      writeFileSync(file, text);
      expect(await outputOf(program, file)).toMatch(printed[name] ?? '');
    },
  };
}

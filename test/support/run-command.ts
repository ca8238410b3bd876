import { Console } from 'node:console';
import { Readable, Writable } from 'node:stream';
import { vi } from 'vitest';
import { runProgram } from '../../src/cli/program.ts';
import { makeTemporaryFolder } from './temporary-folder.ts';
import type { Finished } from './textgate-process.ts';

/** Resolves when no command runs: two would write to the same outputs. */
let idle: Promise<unknown> = Promise.resolve();

/**
 * Runs a command of `textgate` in the process of the test, with outputs, a folder, an environment and an exit code of its
 * own, and `input` on its standard input, as a process would have: a start of one costs more than all that most commands
 * do. Not for `serve`, and not for what ends by a signal.
 */
export function runCommand(
  args: readonly string[],
  folder: string = makeTemporaryFolder(),
  environment: Readonly<Record<string, string>> = {},
  input = '',
): Promise<Finished> {
  const finished = idle.then(() => runAlone(args, folder, environment, input));
  idle = finished.catch(() => {});
  return finished;
}

async function runAlone(
  args: readonly string[],
  folder: string,
  environment: Readonly<Record<string, string>>,
  input: string,
): Promise<Finished> {
  const [stdout, stderr] = [new Captured(), new Captured()];
  const before = { folder: process.cwd(), environment: process.env, exitCode: process.exitCode, console };
  const replaced = [
    vi.spyOn(process, 'stdin', 'get').mockReturnValue(Readable.from([input]) as typeof process.stdin),
    vi.spyOn(process, 'stdout', 'get').mockReturnValue(stdout as unknown as typeof process.stdout),
    vi.spyOn(process, 'stderr', 'get').mockReturnValue(stderr as unknown as typeof process.stderr),
    vi.spyOn(process, 'exit').mockImplementation((code) => {
      throw new Exit(Number(code ?? process.exitCode ?? 0));
    }),
  ];
  const listeners = new Set(process.listeners('SIGINT'));
  process.chdir(folder);
  process.env = { PATH: before.environment['PATH'], ...environment };
  process.exitCode = 0;
  globalThis.console = new Console(stdout, stderr);
  try {
    await runProgram(args);
    return { code: process.exitCode, stdout: stdout.text, stderr: stderr.text };
  } catch (error) {
    if (!(error instanceof Exit)) throw error;
    return { code: error.code, stdout: stdout.text, stderr: stderr.text };
  } finally {
    for (const replacement of replaced) replacement.mockRestore();
    for (const added of process.listeners('SIGINT').filter((listener) => !listeners.has(listener)))
      process.off('SIGINT', added);
    process.chdir(before.folder);
    process.env = before.environment;
    process.exitCode = before.exitCode;
    globalThis.console = before.console;
  }
}

/** Thrown where the process would end. */
class Exit extends Error {
  readonly code: number;

  constructor(code: number) {
    super(`exit with ${code}`);
    this.code = code;
  }
}

/** An output whose text is kept. */
class Captured extends Writable {
  text = '';

  constructor() {
    super({ decodeStrings: false });
  }

  override _write(chunk: string | Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.text += String(chunk);
    done();
  }
}

import { runProgram } from '../../src/cli/program.ts';
import { standInProcess } from './stand-in-process.ts';
import { makeTemporaryFolder } from './temporary-folder.ts';
import type { Finished } from './textgate-process.ts';

/** Resolves when no command runs: two would write to the same outputs. */
let idle: Promise<unknown> = Promise.resolve();

/**
 * Runs a command of `textgate` in the process of the test, with outputs, a folder, an environment and an exit code of its
 * own, and `input` on its standard input, as a process would have: a start of one costs more than all that most commands
 * do. Not for what ends by a signal, and of `serve` only for what it refuses before it makes a gateway: `serveHere` is for
 * the rest.
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
  const onExit = (code: number): never => {
    throw new Exit(code);
  };
  const stand = standInProcess({ folder, environment, input, onExit });
  const ended = (code: number) => ({ code, stdout: stand.stdout.text, stderr: stand.stderr.text });
  try {
    await runProgram(args);
    return ended(Number(process.exitCode));
  } catch (error) {
    if (!(error instanceof Exit)) throw error;
    return ended(error.code);
  } finally {
    stand.end();
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

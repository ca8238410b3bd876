import { spawn } from 'node:child_process';
import { setTimeout as wait } from 'node:timers/promises';
import { expect, onTestFinished } from 'vitest';
import { warningsIn } from './node-warnings.ts';
import { programFile } from './program.ts';

/** The output and exit code of a finished command. */
export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A running `textgate` process, which ends with the test at the latest if `startTextgate` has started it. */
export interface TextgateProcess {
  /** Everything printed on standard output and standard error. */
  readonly output: () => string;
  readonly errors: () => string;
  /** Resolves when the output matches; rejects when the process ends first. */
  printed(pattern: RegExp): Promise<RegExpMatchArray>;
  signal(name: 'SIGTERM' | 'SIGINT' | 'SIGHUP' | 'SIGKILL' | 'SIGUSR2'): void;
  readonly finished: Promise<Finished>;
  readonly pid: number | undefined;
}

/** The outputs of a process: read by the test, or open files. */
export interface Outputs {
  readonly stdout?: 'pipe' | number;
  readonly stderr?: 'pipe' | number;
  /** The program's file, a module or an executable; `npm start`'s by default. */
  readonly program?: string;
}

/** Starts `textgate` as `npm start` does unless another program is named, in a folder and with an environment of its own. */
export function startTextgate(
  args: readonly string[],
  folder: string,
  environment: Readonly<Record<string, string>> = {},
  outputs: Outputs = {},
): TextgateProcess {
  const running = spawnTextgate(args, folder, environment, outputs);
  onTestFinished(async () => {
    running.signal('SIGKILL');
    const { stderr } = await running.finished;
    expect(warningsIn(stderr)).toEqual([]);
  });
  return running;
}

/** The same, but the caller ends it. */
export function spawnTextgate(
  args: readonly string[],
  folder: string,
  environment: Readonly<Record<string, string>> = {},
  outputs: Outputs = {},
): TextgateProcess {
  const program = outputs.program ?? programFile;
  const [file = '', ...first] = /\.[jt]s$/.test(program) ? [process.execPath, program] : [program];
  const child = spawn(file, [...first, ...args], {
    cwd: folder,
    env: { PATH: process.env['PATH'], NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'], ...environment },
    stdio: ['ignore', outputs.stdout ?? 'pipe', outputs.stderr ?? 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  let all = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
    all += text;
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
    all += text;
  });
  const finished = new Promise<Finished>((resolve) =>
    child.on('close', (code) => resolve({ code, stdout, stderr })),
  );
  return {
    output: () => all,
    errors: () => stderr,
    printed: (pattern) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const match = all.match(pattern);
          if (match !== null) resolve(match);
        };
        child.stdout?.on('data', look);
        child.stderr?.on('data', look);
        void finished.then(() => reject(new Error(`ended before it printed ${pattern}: ${stdout}${stderr}`)));
        look();
      }),
    signal: (name) => void child.kill(name),
    finished,
    pid: child.pid,
  };
}

/** From when on another signal counts as a second one, in milliseconds. */
const secondSignalMs = 500;

/**
 * Sends SIGTERM to a process that has said what it does after the first one, as soon as it counts as a second one. Only once:
 * the process is replaced by a program that ends with the right code, and that a further signal would kill.
 */
export async function signalAgain(server: TextgateProcess): Promise<void> {
  await wait(secondSignalMs + 1);
  server.signal('SIGTERM');
}

/** The environment of a server on free ports. */
export const freePorts = { TEXTGATE_PORT: '0', TEXTGATE_ADMIN_PORT: '0' };

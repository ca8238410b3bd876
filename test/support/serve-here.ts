import { onTestFinished } from 'vitest';
import { runProgram } from '../../src/cli/program.ts';
import { standInProcess } from './stand-in-process.ts';
import type { Finished, TextgateProcess } from './textgate-process.ts';

/** `textgate serve` in the process of the test, which ends with the test at the latest. */
export type ServedHere = Omit<TextgateProcess, 'signal' | 'pid'> & {
  /** Calls what the program does on a signal. */
  signal(name: 'SIGTERM' | 'SIGINT' | 'SIGHUP' | 'SIGUSR2'): void;
};

/**
 * Runs `textgate serve` in the process of the test, as `startTextgate` does in one of its own, whose start costs ten times as
 * much. Not for what a process alone can show: its end by an uncaught error or by force, the files that it has open, its
 * memory, and signals before there is a gateway. One at a time.
 */
export function serveHere(
  args: readonly string[],
  folder: string,
  environment: Readonly<Record<string, string>> = {},
): ServedHere {
  const exited = Promise.withResolvers<Finished>();
  let finished: Finished | null = null;
  let isEnding = false;
  let isOver = false;
  let all = '';
  const lookers = new Set<() => void>();
  const onExit = (code: number): void => {
    finished ??= { code, stdout: stand.stdout.text, stderr: stand.stderr.text };
    // A start that fails leaves a gateway, which would end with the process.
    if (!isEnding && !stand.stderr.text.includes('textgate: shutting down') && end()) return;
    if (isOver) return;
    isOver = true;
    const result = finished;
    // What a program does to end, it does in several ways one after the other: none may reach the process of the test.
    setImmediate(() => {
      stand.end();
      exited.resolve(result);
    });
  };
  const stand = standInProcess({ folder, environment, onExit });
  const end = (): boolean => {
    isEnding = true;
    return stand.signal('SIGTERM');
  };
  for (const output of [stand.stdout, stand.stderr])
    output.onText = (piece) => {
      all += piece;
      for (const look of lookers) look();
    };
  void runProgram(args);
  onTestFinished(async () => {
    if (!isEnding) end();
    await exited.promise;
  });
  return {
    output: () => all,
    errors: () => stand.stderr.text,
    printed: (pattern) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const match = all.match(pattern);
          if (match !== null) resolve(match);
        };
        lookers.add(look);
        void exited.promise.then(({ stdout, stderr }) =>
          reject(new Error(`ended before it printed ${pattern}: ${stdout}${stderr}`)),
        );
        look();
      }),
    signal(name) {
      if (name === 'SIGTERM' || name === 'SIGINT') isEnding = true;
      stand.signal(name);
    },
    finished: exited.promise,
  };
}

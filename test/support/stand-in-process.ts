import { Console } from 'node:console';
import { Socket } from 'node:net';
import { Readable } from 'node:stream';

/** What the program has of its own, and what is called where it ends. */
interface StandInOptions {
  readonly folder: string;
  readonly environment: Readonly<Record<string, string>>;
  /** What is on its standard input. */
  readonly input?: string;
  /** Called where the process would end; may throw, as nothing follows there in a process. */
  readonly onExit: (code: number) => void;
}

/** The process of the test, made to look as a new one to the program that runs in it. */
export interface StandInProcess {
  readonly stdout: Captured;
  readonly stderr: Captured;
  /** Calls what the program does on a signal; false if it does nothing. */
  signal(name: NodeJS.Signals): boolean;
  /** Makes it the process of the test again. What the program has set to happen later does not happen. */
  end(): void;
}

type Listener = (event: string) => void;

/** Longer timers than a test has: those of the program, which end with its process. */
const leastTimerMs = 1_000;

/** What is replaced in `process` as long as the program runs. */
const replaced = ['stdin', 'stdout', 'stderr', 'env', 'exit', 'execve', 'kill'] as const;

/** Events that the program listens to, in a process of its own. */
const events = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR2', 'uncaughtException', 'unhandledRejection'] as const;

/**
 * Gives the process of the test outputs, a folder, an environment and an exit code of a program's own. Two may be nested in
 * each other.
 */
export function standInProcess({ folder, environment, input = '', onExit }: StandInOptions): StandInProcess {
  const [stdout, stderr] = [new Captured(), new Captured()];
  const before = {
    properties: replaced.map((name) => [name, Object.getOwnPropertyDescriptor(process, name)] as const),
    folder: process.cwd(),
    exitCode: process.exitCode,
    console,
    setTimeout,
    kill: process.kill.bind(process),
    listeners: new Map<string, ReadonlySet<unknown>>(
      events.map((name) => [name, new Set(process.listeners(name as NodeJS.Signals))]),
    ),
  };
  const addedListeners = (name: string): readonly Listener[] =>
    (process.listeners(name as NodeJS.Signals) as Listener[]).filter(
      (listener) => before.listeners.get(name)?.has(listener) === false,
    );
  const timers: NodeJS.Timeout[] = [];
  const exit = (code?: number | string | null): void => onExit(Number(code ?? process.exitCode ?? 0));
  const stand = {
    stdin: Readable.from([input]),
    stdout,
    stderr,
    env: { PATH: process.env['PATH'], ...environment },
    exit,
    // By these two the program ends at once.
    execve: (file: string) => exit(file.endsWith('true') ? 0 : 1),
    kill: (pid: number, signal?: number | NodeJS.Signals) => pid === process.pid || before.kill(pid, signal),
  };
  for (const name of replaced)
    Object.defineProperty(process, name, { value: stand[name], configurable: true, writable: true });
  process.exitCode = 0;
  process.chdir(folder);
  globalThis.console = new Console(stdout, stderr);
  globalThis.setTimeout = Object.assign((...call: Parameters<typeof setTimeout>) => {
    const timer = before.setTimeout(...call);
    if ((call[1] ?? 0) >= leastTimerMs) timers.push(timer);
    return timer;
  }, before.setTimeout);
  return {
    stdout,
    stderr,
    signal(name) {
      const listeners = addedListeners(name);
      for (const listener of listeners) listener(name);
      return listeners.length > 0;
    },
    end() {
      for (const name of events) for (const listener of addedListeners(name)) process.off(name, listener);
      for (const timer of timers) clearTimeout(timer);
      for (const [name, descriptor] of before.properties)
        if (descriptor !== undefined) Object.defineProperty(process, name, descriptor);
      process.exitCode = before.exitCode;
      process.chdir(before.folder);
      globalThis.console = before.console;
      globalThis.setTimeout = before.setTimeout;
    },
  };
}

/** An output whose text is kept; a pipe, as far as the program can see. */
class Captured extends Socket {
  text = '';
  /** Called with each piece. */
  onText: (piece: string) => void = () => {};

  override _write(chunk: string | Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#keep(String(chunk));
    done();
  }

  override _writev(chunks: { chunk: string | Buffer }[], done: () => void): void {
    for (const { chunk } of chunks) this.#keep(String(chunk));
    done();
  }

  #keep(piece: string): void {
    this.text += piece;
    this.onText(piece);
  }
}

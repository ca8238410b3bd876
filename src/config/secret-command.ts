import { spawn, spawnSync } from 'node:child_process';
import type { SpawnSyncOptions } from 'node:child_process';
import { checkSecret, maxSecretBytes } from './secret-file.ts';

/** A program that prints a secret, and how long it may run, in milliseconds. */
export interface SecretCommand {
  /** The program and its arguments; no shell reads them. */
  readonly command: readonly string[];
  readonly timeout: number;
}

/**
 * Runs a command that prints a secret, and waits for it: only where no request is served yet. Throws with the reason, which
 * quotes nothing that the command has printed.
 */
export function readSecretCommand({ command: [program = '', ...rest], timeout }: SecretCommand): string {
  // In a group of its own: else only the program would be killed, and what it has started would live on.
  const options: SpawnSyncOptions & { readonly detached: true } = {
    detached: true,
    env: environmentOfCommands(),
    stdio: ['ignore', 'pipe', 'ignore'],
    timeout,
    killSignal: 'SIGKILL',
    maxBuffer: maxSecretBytes,
  };
  const { error, pid, status, signal, stdout } = spawnSync(program, rest, options);
  if (error !== undefined) {
    if (pid > 0) killGroup(pid);
    throw describeFault((error as NodeJS.ErrnoException).code, timeout);
  }
  return checkOutput(status, signal, stdout.toString());
}

/** As `readSecretCommand`, for a process that serves requests. `stopping` ends the command. */
export function readSecretCommandAgain(
  { command: [program = '', ...rest], timeout }: SecretCommand,
  stopping: AbortSignal,
): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  // In a group of its own: what the program has started would live on, and hold its output open.
  const child = spawn(program, rest, {
    env: environmentOfCommands(),
    stdio: ['ignore', 'pipe', 'ignore'],
    detached: true,
  });
  let output = '';
  const end = (code: string): void => {
    reject(describeFault(code, timeout));
    if (child.pid !== undefined) killGroup(child.pid);
  };
  const stop = (): void => end('ABORT_ERR');
  const limit = setTimeout(() => end('ETIMEDOUT'), timeout);
  stopping.addEventListener('abort', stop, { once: true });
  if (stopping.aborted) stop();
  child.stdout.setEncoding('latin1').on('data', (text: string) => {
    output += text;
    if (output.length > maxSecretBytes) end('ENOBUFS');
  });
  child.on('error', ({ code }: NodeJS.ErrnoException) => reject(describeFault(code, timeout)));
  child.on('close', (status, signal) => {
    try {
      resolve(checkOutput(status, signal, output));
    } catch (error) {
      reject(error);
    }
  });
  return promise.finally(() => {
    clearTimeout(limit);
    stopping.removeEventListener('abort', stop);
  });
}

/** Ends a command and all that it has started; none of it may be left. */
function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It ended by itself meanwhile.
  }
}

/** What commands find in their environment: not the gateway's own secrets. */
function environmentOfCommands(): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith('TEXTGATE_'));
  return Object.fromEntries(own);
}

/** Why a command could not be run to its end. The system's own message would have its arguments. */
function describeFault(code: string | undefined, timeoutMs: number): Error {
  const reasons: Readonly<Record<string, string>> = {
    ENOENT: 'there is no such program',
    EACCES: 'this user may not run the program',
    ETIMEDOUT: `the command took longer than ${timeoutMs} ms`,
    ENOBUFS: `the command printed more than ${maxSecretBytes} bytes`,
    ABORT_ERR: 'the command was stopped',
  };
  return new Error(reasons[code ?? ''] ?? `the command can't be run (${code ?? 'unknown reason'})`);
}

function checkOutput(status: number | null, signal: string | null, output: string): string {
  if (signal !== null) throw new Error(`the command was ended by ${signal}`);
  if (status !== 0) throw new Error(`the command ended with the exit code ${status}`);
  return checkSecret(output, 'the command printed nothing', 'the command printed');
}

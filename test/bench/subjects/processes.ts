import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess, StdioOptions } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

/** How long a process may take until it answers, and how often it is asked, in milliseconds. */
const readyDeadlineMs = 30_000;
const readyPollMs = 5;

/** How long a process may take to end by itself, in milliseconds. */
const stopDeadlineMs = 30_000;

/** All started processes: they are killed when this one exits. */
const running = new Set<ChildProcess>();
process.on('exit', () => running.forEach((child) => child.kill('SIGKILL')));

/** How to start a process. */
export interface ProcessOptions {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly stdio?: StdioOptions;
  /** The most files that it may have open; null keeps the limit of this process. */
  readonly openFiles?: number | null;
}

/** Starts a program. */
export function startProcess(
  program: string,
  args: readonly string[],
  { cwd, env = {}, stdio = 'ignore', openFiles = null }: ProcessOptions,
): ChildProcess {
  const [command = '', ...rest] = [...(openFiles === null ? [] : raising(openFiles)), program, ...args];
  return registered(spawn(command, rest, { cwd, env: { ...process.env, ...env }, stdio }));
}

/** Starts a module of the bench that talks to this process by messages. */
export function forkModule(path: string, openFiles: number | null = null): ChildProcess {
  const program = [process.execPath, path];
  const [command = '', ...args] = openFiles === null ? program : [...raising(openFiles), ...program];
  return registered(
    // JSON has no NaN, the percentile of no values.
    spawn(command, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'], serialization: 'advanced' }),
  );
}

/** The command that starts another one with a limit of open files; nothing where the limit suffices, as Node uses all of it. */
function raising(openFiles: number): readonly string[] {
  return mostOpenFiles() >= openFiles ? [] : ['prlimit', `--nofile=${openFiles}:${openFiles}`];
}

/** The most files that a process may have open: its hard limit. */
function mostOpenFiles(): number {
  const [, hard = ''] = /^Max open files +\d+ +(\w+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
  return hard === 'unlimited' ? Number.POSITIVE_INFINITY : Number(hard);
}

/** As many open files as are wanted, or fewer where the limit is lower and can't be raised. */
export function allowedOpenFiles(wanted: number): number {
  const [command, ...args] = [...raising(wanted), 'true'];
  const isAllowed = spawnSync(command ?? 'true', args, { stdio: 'ignore' }).status === 0;
  return isAllowed ? wanted : mostOpenFiles();
}

function registered(child: ChildProcess): ChildProcess {
  running.add(child);
  child.once('close', () => running.delete(child));
  return child;
}

/** Ends a process by a signal, by force if it takes too long. */
export async function stopProcess(
  child: ChildProcess,
  signal: 'SIGTERM' | 'SIGINT' = 'SIGTERM',
): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const closed = once(child, 'close');
  const timer = setTimeout(() => child.kill('SIGKILL'), stopDeadlineMs);
  child.kill(signal);
  await closed;
  clearTimeout(timer);
}

/** Waits until a process answers on a path, with anything but a fault of its own. Throws when it ends before. */
export async function untilReady(child: ChildProcess, port: number, path: string): Promise<void> {
  let error: Error | null = null;
  child.once('error', (cause) => (error = cause));
  for (const startedMs = performance.now(); performance.now() - startedMs < readyDeadlineMs;) {
    const status = await statusOf(port, path);
    if (status !== null && status < 500) return;
    if (error !== null) throw error;
    if (child.exitCode !== null) throw new Error(`it ended with code ${child.exitCode}`);
    await sleep(readyPollMs);
  }
  throw new Error(`it does not answer within ${readyDeadlineMs / 1_000} s`);
}

/** The status of a GET request; null without an answer. */
function statusOf(port: number, path: string): Promise<number | null> {
  return new Promise((resolve) => {
    const request = get({ host: '127.0.0.1', port, path, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode ?? null);
    });
    request.on('error', () => resolve(null));
  });
}

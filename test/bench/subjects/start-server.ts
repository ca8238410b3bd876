import { startProcess, stopProcess, untilReady } from './processes.ts';
import type { ProcessOptions } from './processes.ts';
import type { RunningSubject } from './subject.ts';

/** A program that serves a port. */
interface Server {
  readonly program: string;
  readonly args: readonly string[];
  readonly options: ProcessOptions;
  readonly port: number;
  /** Where it answers once it is ready, if not on `/` of its port. */
  readonly readiness?: { readonly port: number; readonly path: string };
}

/** Starts a program and resolves when it answers; it is ended if it does not, so that it takes no CPU from the others. */
export async function startServer(server: Server): Promise<RunningSubject> {
  const { program, args, options, port, readiness = { port, path: '/' } } = server;
  const startedMs = performance.now();
  const child = startProcess(program, args, options);
  const close = (): Promise<void> => stopProcess(child);
  try {
    await untilReady(child, readiness.port, readiness.path);
  } catch (error) {
    await close();
    throw error;
  }
  const startMs = performance.now() - startedMs;
  return {
    port,
    headers: {},
    failoverHeaders: null,
    pid: child.pid ?? 0,
    commandLine: null,
    databaseFile: null,
    startMs,
    shared: null,
    close,
  };
}

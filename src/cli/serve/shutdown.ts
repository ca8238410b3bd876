import type { ComposedGateway } from '../../gateway.ts';
import { formatDuration } from '../../shared/duration.ts';
import type { LogDestination } from '../../telemetry/log/log-destination.ts';
import { describeError } from '../describe-error.ts';

/** How long the process may run on after an uncaught error, in milliseconds. */
const crashLimitMs = 4_500;

/** How many uncaught errors are logged: the first one matters, and a loop may throw endlessly. */
const maxLoggedCrashes = 10;

/** How long the process waits for its last lines on standard error, in milliseconds. */
const lastLinesMs = 500;

/** Within how many milliseconds a second signal counts as the first one: npm repeats a signal that its group got. */
const sameSignalMs = 500;

/** The longest delay of a timer, in milliseconds; a timer with a longer one fires at once. */
const maxTimerMs = 2_147_483_647;

/** How much longer closing may take when the database is lost, in milliseconds: it may be written to a new file. */
const rescueLimitMs = 600_000;

/** Why the process ends, and how. */
type Reason =
  /** Requests in progress get the drain time; the exit code is 0. */
  | { readonly kind: 'signal' }
  /** The database is lost. Requests in progress get the drain time; the exit code is 1. */
  | { readonly kind: 'failure'; readonly error: Error }
  /** An uncaught error. Requests in progress end with an error at once; the exit code is 1. */
  | { readonly kind: 'crash'; readonly error: unknown };

/** Closes the gateway and ends the process, at the deadline in any case. A worse second reason replaces the first. */
type ShutDown = (reason: Reason) => void;

/** What a worker among several does at its end; a process that is alone says by itself that it ends. */
interface WorkerEnding {
  /** Called when everything is closed. */
  tellFigures(gateway: ComposedGateway): Promise<void>;
}

/** A gateway whose process ends by itself when it has to. */
interface Ending {
  readonly isEnding: () => boolean;
  /** Ends the process as the first signal does, without the delay before the listeners close. */
  readonly end: () => void;
}

/**
 * Ends the process on SIGTERM and SIGINT, on an uncaught error, and when its database is lost, so that its supervisor
 * starts it again. After a signal requests are still taken for `server.shutdownDelay`. A second signal, at least half a
 * second after the first, ends it at once.
 */
export function endOnSignalOrFault(
  gateway: ComposedGateway,
  stderr: LogDestination,
  worker: WorkerEnding | null,
): Ending {
  let isEnding = false;
  let isClosing = false;
  const close = createShutdown(gateway, stderr, worker);
  const shutDown: ShutDown = (reason) => {
    // A signal, or the end of its delay, adds nothing to a closing that has begun: what it says would be said twice.
    if (reason.kind === 'signal' && isClosing) return;
    isEnding = true;
    isClosing = true;
    close(reason);
  };
  const end = (): void => shutDown({ kind: 'signal' });
  onEndingSignal(
    () => {
      if (isClosing) return;
      isEnding = true;
      const { delayMs, over } = gateway.leave();
      if (worker === null && delayMs > 0) stderr.write(describeDelay(delayMs));
      void over.then(end);
    },
    () => endNow(1),
  );
  void gateway.failed.then((error) => shutDown({ kind: 'failure', error }));
  process.on('uncaughtException', (error: unknown) => shutDown({ kind: 'crash', error }));
  process.on('unhandledRejection', (error: unknown) => shutDown({ kind: 'crash', error }));
  return { isEnding: () => isEnding, end };
}

/** What is said while requests are still taken. For all workers, the primary process says it once. */
export function describeDelay(delayMs: number): string {
  return `textgate: shutting down in ${formatDuration(delayMs)}; requests are taken until then\n`;
}

/**
 * Calls back on the first SIGTERM or SIGINT, and on the first one that comes half a second or more after it.
 */
export function onEndingSignal(onFirst: () => void, onSecond: () => void): void {
  let firstSignalMs: number | null = null;
  const onSignal = (): void => {
    if (firstSignalMs !== null && performance.now() - firstSignalMs >= sameSignalMs) onSecond();
    if (firstSignalMs !== null) return;
    firstSignalMs = performance.now();
    onFirst();
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
}

function createShutdown(
  gateway: ComposedGateway,
  stderr: LogDestination,
  worker: WorkerEnding | null,
): ShutDown {
  let exitCode = 0;
  let crashes = 0;
  let isFinishing = false;
  const deadline = createDeadline(gateway);
  /** Ends the process when everything is closed. A second call only waits: its reason speeds up the first closing. */
  const finish = async (closed: Promise<void>): Promise<void> => {
    if (isFinishing) return void closed.catch(() => {});
    isFinishing = true;
    await closed.catch((error: unknown) => {
      exitCode = 1;
      stderr.write(`textgate: shutdown failed: ${describeError(error)}\n`);
    });
    await worker?.tellFigures(gateway).catch(() => {});
    await stderr.flush(lastLinesMs);
    // `process.exit` would wait for a write that hangs in the thread pool.
    if (process.getActiveResourcesInfo().includes('FSReqCallback')) endNow(exitCode);
    process.exit(exitCode);
  };
  return (reason) => {
    deadline(reason.kind);
    if (reason.kind !== 'signal') exitCode = 1;
    if (reason.kind === 'crash') {
      // Each call logs its error; the first one ends the requests in progress.
      if (++crashes <= maxLoggedCrashes) void finish(gateway.crash(reason.error));
      return;
    }
    const cause = reason.kind === 'failure' ? `: ${reason.error.message}` : '';
    // For all workers, the primary process says it once.
    if (worker === null) stderr.write(`textgate: shutting down${cause}; waiting for requests in progress\n`);
    void finish(gateway.close());
  };
}

/**
 * Ends the process at a deadline. Of several reasons, the lost database sets it, whose rescue takes long; else the
 * crash, whose deadline is short; else the signal. A repeated kind of reason changes nothing.
 */
export function createDeadline(
  { closeLimitMs }: Pick<ComposedGateway, 'closeLimitMs'>,
  end: () => void = () => endNow(1),
): (kind: Reason['kind']) => void {
  let timer: NodeJS.Timeout | undefined;
  let weight = 0;
  const limits: Readonly<
    Record<Reason['kind'], { readonly weight: number; readonly limitMs: () => number }>
  > = {
    signal: { weight: 1, limitMs: closeLimitMs },
    crash: { weight: 2, limitMs: () => crashLimitMs },
    failure: { weight: 3, limitMs: () => closeLimitMs() + rescueLimitMs },
  };
  return (kind) => {
    if (limits[kind].weight <= weight) return;
    weight = limits[kind].weight;
    clearTimeout(timer);
    timer = setTimeout(end, Math.min(limits[kind].limitMs(), maxTimerMs));
  };
}

/**
 * Ends the process without waiting for its threads. `process.exit` waits for a locked database, and endlessly for a
 * file system that hangs; replacing the process by another program is immediate, and that program exits with the right
 * code.
 */
function endNow(exitCode: number): void {
  try {
    const name = exitCode === 0 ? 'true' : 'false';
    // busybox selects its program by the first argument.
    process.execve?.(`/bin/${name}`, [name], {});
  } catch {
    // The system does not have these programs.
  }
  process.kill(process.pid, 'SIGKILL');
}

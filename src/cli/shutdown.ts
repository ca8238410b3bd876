import type { ComposedGateway } from '../gateway.ts';
import type { LogDestination } from '../telemetry/log-destination.ts';
import { whatFailed } from './what-failed.ts';

/** How long the process may live on after an error that nothing caught, in milliseconds. */
const crashLimitMs = 4_500;

/** How many errors that nothing caught are logged: the first one matters, and a loop may throw without end. */
const maxLoggedCrashes = 10;

/** How long the last lines on standard error may take to get out, in milliseconds. */
const lastLinesMs = 500;

/** How soon a second signal may come and still be the first one, in milliseconds: npm passes on what its group got, too. */
const sameSignalMs = 500;

/** The longest time that a timer can hold, in milliseconds; a longer one would be over at once. */
const maxTimerMs = 2_147_483_647;

/** How much longer closing may take where the database is lost: all of it may be written to a new file, in milliseconds. */
const rescueLimitMs = 600_000;

/** Why the process ends, and how. */
type Reason =
  /** Running answers get the drain time; the exit code is 0. */
  | { readonly kind: 'signal' }
  /** The database can't be kept in use. Running answers get the drain time; the exit code is 1. */
  | { readonly kind: 'failure'; readonly error: Error }
  /** Running answers end with an error at once; the exit code is 1. */
  | { readonly kind: 'crash'; readonly error: unknown };

/** Ends the process in order, and at the deadline in any case. A second reason overrules the first if it is worse. */
export type ShutDown = (reason: Reason) => void;

/**
 * Ends the process on SIGTERM and SIGINT, when its database is lost, so that its supervisor starts it again, and after
 * errors that nothing caught. A second signal half a second later or more, for the impatient, ends it as it is.
 */
export function endOnSignalOrFault(gateway: ComposedGateway, stderr: LogDestination): ShutDown {
  const shutDown = createShutdown(gateway, stderr);
  let firstSignalMs: number | null = null;
  const onSignal = (): void => {
    const nowMs = performance.now();
    if (firstSignalMs !== null && nowMs - firstSignalMs >= sameSignalMs) endNow(1);
    if (firstSignalMs !== null) return;
    firstSignalMs = nowMs;
    shutDown({ kind: 'signal' });
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
  void gateway.failed.then((error) => shutDown({ kind: 'failure', error }));
  process.on('uncaughtException', (error: unknown) => shutDown({ kind: 'crash', error }));
  process.on('unhandledRejection', (error: unknown) => shutDown({ kind: 'crash', error }));
  return shutDown;
}

function createShutdown(gateway: ComposedGateway, stderr: LogDestination): ShutDown {
  let exitCode = 0;
  let crashes = 0;
  let isFinishing = false;
  const deadline = createDeadline(gateway);
  /** Ends the process when everything is closed; a second reason hastens the closing that runs, and has no end of its own. */
  const finish = async (closed: Promise<void>): Promise<void> => {
    if (isFinishing) return void closed.catch(() => {});
    isFinishing = true;
    await closed.catch((error: unknown) => {
      exitCode = 1;
      stderr.write(`textgate did not close cleanly: ${whatFailed(error)}\n`);
    });
    await stderr.flush(lastLinesMs);
    // A write that hangs in the thread pool would hold up `process.exit`, too.
    if (process.getActiveResourcesInfo().includes('FSReqCallback')) endNow(exitCode);
    process.exit(exitCode);
  };
  return (reason) => {
    deadline(reason.kind);
    if (reason.kind !== 'signal') exitCode = 1;
    if (reason.kind === 'crash') {
      // Each call logs its error; the first one ends what runs.
      if (++crashes <= maxLoggedCrashes) void finish(gateway.crash(reason.error));
      return;
    }
    const cause = reason.kind === 'failure' ? `: ${reason.error.message}` : '';
    stderr.write(`textgate stops${cause}; running answers may end\n`);
    void finish(gateway.close());
  };
}

/**
 * Ends the process at the deadline of the reasons so far: that of a lost database, which may be written to a new file,
 * before that of a crash, which is short, before that of a signal. Each kind of reason counts once.
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
 * Ends the process without waiting for its threads. `process.exit` waits for a database that is locked, and without end
 * for a file system that hangs; another program in this one's place is there at once, and exits with the code we want.
 */
function endNow(exitCode: number): void {
  try {
    const name = exitCode === 0 ? 'true' : 'false';
    // By its first argument busybox knows which of its programs it is.
    process.execve?.(`/bin/${name}`, [name], {});
  } catch {
    // A system without these programs.
  }
  process.kill(process.pid, 'SIGKILL');
}

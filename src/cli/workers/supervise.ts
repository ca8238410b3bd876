import cluster from 'node:cluster';
import { systemClock } from '../../composition/clock.ts';
import { readLogSettings } from '../../config/log-settings.ts';
import { removeStaleSocket } from '../../http/listen/socket-file.ts';
import type { LogDestination } from '../../telemetry/log/log-destination.ts';
import { createLog } from '../../telemetry/log/logger.ts';
import type { Log } from '../../telemetry/log/logger.ts';
import { describeError } from '../describe-error.ts';
import { stopEndingOnEarlySignal } from '../early-signals.ts';
import { reloadOnChange } from '../serve/reload-on-change.ts';
import type { Reloaded, WatchedFile } from '../serve/reload-on-change.ts';
import { loadServeConfig, readServeText, sharedWorkerCount } from '../serve/serve-config.ts';
import type { ServeOptions } from '../serve/serve-config.ts';
import { describeDelay, onEndingSignal } from '../serve/shutdown.ts';
import { createAllMetrics, allAnswers, whyNoWorkerReady } from './ask-all.ts';
import { ConfigInForce } from './config-in-force.ts';
import type { ConfigWithText } from './config-in-force.ts';
import { Fleet } from './fleet.ts';
import { forkWorker, prepareForks } from './fork-worker.ts';
import type { WorkerPorts, WorkerProcess } from './fork-worker.ts';
import { Handovers } from './handovers.ts';
import type { Answer, PrimaryQuestion } from './messages.ts';
import { killHanging } from './kill-hanging.ts';

/** How long the primary process waits for its last lines, in milliseconds. */
const lastLinesMs = 1_000;

/** The config of a start, and the file that it was read from; `null` when none is given. */
interface FirstConfig extends ConfigWithText {
  readonly watched: WatchedFile | null;
}

/**
 * Runs a gateway in several workers: this process, the primary one, opens the ports, starts the workers, replaces those
 * that end, and passes on signals. It hands connections to the workers in turn and takes no part in any request.
 */
export async function supervise(
  first: FirstConfig,
  count: number,
  options: ServeOptions,
  stderr: LogDestination,
): Promise<void> {
  if (!cluster.isPrimary)
    throw new Error(
      'server.workers starts processes of its own, and this process is itself a worker of a cluster, as of pm2 in cluster mode. Start it as a process of its own (pm2: exec_mode fork)',
    );
  const { socket } = first.config.server;
  if (socket !== undefined) await removeStaleSocket(socket);
  const { logLevel, logFormat } = readLogSettings(process.env);
  const log = createLog(logLevel, systemClock, undefined, logFormat);
  const inForce = new ConfigInForce(first);
  const fleet = createFleet(inForce, log);
  const exit = async (code: number): Promise<never> => {
    await log.close();
    await stderr.flush(lastLinesMs);
    process.exit(code);
  };
  let isEnding = false;
  const end = async (code: number): Promise<void> => {
    if (isEnding) return;
    isEnding = true;
    const endedWell = await fleet.end();
    await exit(endedWell ? code : 1);
  };
  let isUp = false;
  onEndingSignal(
    () =>
      void leave(fleet, isUp ? inForce.config.server.shutdownDelay : 0, stderr).then(() => {
        if (!isEnding) stderr.write('textgate: shutting down; waiting for requests in progress\n');
        return end(0);
      }),
    () => {
      fleet.kill();
      process.exit(1);
    },
  );
  stopEndingOnEarlySignal();
  void fleet.failed.then(() => {
    stderr.write('textgate: no worker can be started any more; the reason is above\n');
    return end(1);
  });
  const { promise: up, resolve: started } = Promise.withResolvers<void>();
  // Before the start: during it these signals would end the process, although its first worker takes requests.
  const reloaded = reloadedIn(fleet, inForce, log, up);
  if (first.watched !== null) reloadOnChange(reloaded, first.watched, options, stderr);
  process.on('SIGUSR2', () => void up.then(() => restart(fleet, inForce, options, stderr)));
  if (!(await fleet.start(count))) return end(1);
  isUp = true;
  stderr.write(`${count} workers take requests; SIGUSR2 replaces them one by one\n`);
  started();
}

/** Has the workers answer that they are not ready; resolves after the delay in which they still take requests. */
async function leave(fleet: Fleet, delayMs: number, stderr: LogDestination): Promise<void> {
  if (delayMs === 0) return;
  stderr.write(describeDelay(delayMs));
  fleet.leave();
  await new Promise<void>((resolve) => systemClock.schedule(delayMs, resolve));
}

/** The workers, whose questions are answered, and whose ends are logged. */
function createFleet(inForce: ConfigInForce, log: Pick<Log, 'fault'>): Fleet {
  prepareForks();
  const peerToken = crypto.randomUUID();
  const fleet: Fleet = new Fleet({
    clock: systemClock,
    fork: (settings) => forkWorker({ ...settings, peerToken }, ports),
    drainMs: () => inForce.config.server.drain,
    onLost: ({ id, pid }, { code, signal }, delayMs) =>
      log.fault(
        'worker ended: another one replaces it',
        signal === null ? `exit code ${code}` : `signal ${signal}`,
        { worker: id, ...(pid === undefined ? {} : { pid }), replacedAfterMs: delayMs },
      ),
    onEnd: (worker) => metrics.ended(worker),
  });
  const metrics = createAllMetrics(() => fleet.alive);
  killHanging(
    () => fleet.alive,
    systemClock,
    ({ id, pid }, silentMs) =>
      log.fault('worker does not answer: it is killed', `no answer for ${silentMs / 1_000} s`, {
        worker: id,
        ...(pid === undefined ? {} : { pid }),
      }),
  );
  const ports: WorkerPorts = {
    clock: systemClock,
    answer: (question) => answer(question, fleet, inForce, metrics),
    handovers: new Handovers(() => fleet.isEnding),
  };
  return fleet;
}

/** Puts a config into force in all workers, once they are up. */
function reloadedIn(
  fleet: Fleet,
  inForce: ConfigInForce,
  log: Pick<Log, 'fault'>,
  up: Promise<void>,
): Reloaded {
  return {
    replaceConfig: (config, text) => up.then(() => inForce.replace({ config, text }, fleet)),
    reloadFailed: (error) => void reportFailedReload(error, fleet.serving, log),
  };
}

async function answer(
  question: PrimaryQuestion,
  fleet: Fleet,
  inForce: ConfigInForce,
  metrics: { expose(): Promise<string> },
): Promise<Answer> {
  if (question.name === 'config text') return inForce.text;
  if (question.name === 'metrics') return metrics.expose();
  if (question.name === 'statuses') return allAnswers(fleet.alive, 'status');
  return question.name === 'all views' ? allAnswers(fleet.alive, 'views') : whyNoWorkerReady(fleet.alive);
}

/** Has one worker log and count a config that this process could not read. */
async function reportFailedReload(
  error: unknown,
  [worker]: readonly WorkerProcess[],
  log: Pick<Log, 'fault'>,
): Promise<void> {
  const reason = describeError(error);
  const answered = await worker?.ask({ name: 'reload failed', reason });
  if (answered === undefined) log.fault('config reload failed: the previous config stays in force', reason);
}

/** Replaces all workers by new ones, with what the config file has now, unless it can't be used. */
async function restart(
  fleet: Fleet,
  inForce: ConfigInForce,
  options: ServeOptions,
  stderr: LogDestination,
): Promise<void> {
  try {
    const text = readServeText(options);
    const config = loadServeConfig(options, process.env, text);
    const count = sharedWorkerCount(config);
    if (count < 2) throw new Error('server.workers is 1 now: only a restart of the gateway ends its workers');
    // In the old ones as well: if a new one can't be started, those that go on have the same config as those before it.
    await inForce.replace({ config, text }, fleet);
    stderr.write('replacing the workers one by one\n');
    const isDone = await fleet.restart(count);
    stderr.write(
      isDone
        ? `all workers are replaced: ${count} take requests\n`
        : 'the workers are not all replaced: those that run go on\n',
    );
  } catch (error) {
    stderr.write(`the workers are not replaced: ${describeError(error)}\n`);
  }
}

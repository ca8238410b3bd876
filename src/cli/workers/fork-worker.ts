import cluster from 'node:cluster';
import { isSea } from 'node:sea';
import type { Clock } from '../../domain/ports/clock.ts';
import type { MetricsText } from '../../telemetry/metrics/metric-sums.ts';
import type { Handovers } from './handovers.ts';
import { createQuestions, workerAnswerMs } from './messages.ts';
import type { Answer, PrimaryQuestion, ToPrimary, ToWorker, WorkerQuestion } from './messages.ts';
import { seatVariable } from './seat.ts';
import type { SeatSettings } from './seat.ts';

/** How long a worker may take until it takes requests, in milliseconds: it may wait for a database that is slow. */
const startMs = 120_000;

/** How a worker ended: its exit code, or the signal that killed it. */
export interface WorkerEnd {
  readonly code: number | null;
  readonly signal: string | null;
  /** Whether it was killed because it did not take requests in time. */
  readonly isOverdue: boolean;
}

/** A worker, as the primary process sees it. */
export interface WorkerProcess {
  readonly id: number;
  readonly pid: number | undefined;
  /** Whether it takes requests, or did. */
  readonly hasStarted: boolean;
  /** How many messages it has sent: each, also an answer that came too late, shows that its event loop runs. */
  readonly sentMessages: number;
  /** What it had counted when it ended, if it could still say it. */
  readonly lastFigures: MetricsText | null;
  /** Resolves when it takes requests, with `true`, or when it ended before. */
  readonly started: Promise<boolean>;
  readonly ended: Promise<WorkerEnd>;
  ask(question: WorkerQuestion, withinMs?: number): Promise<Answer | undefined>;
  /** Has it answer that it is not ready, and go on. */
  leave(): void;
  /** Has it end as after a signal. */
  end(): void;
  /** Has it leave new connections to the others, and end when the open ones had time to. */
  retire(): void;
  kill(): void;
}

/** What workers need of the primary process. */
export interface WorkerPorts {
  readonly clock: Clock;
  /** Answers the questions of workers. */
  readonly answer: (question: PrimaryQuestion) => Promise<Answer>;
  readonly handovers: Handovers;
}

/**
 * Has the primary process hand connections to the workers in turn: with long answers, the system's own choice is uneven. Called
 * once, before the first worker is started.
 */
export function prepareForks(): void {
  cluster.schedulingPolicy = cluster.SCHED_RR;
  if (!isSea()) return;
  // An executable takes the program's file, which Node names first, for its first argument, so that takes its place.
  const [exec = 'serve', ...args] = process.argv.slice(2);
  cluster.setupPrimary({ exec, args, execArgv: [] });
}

/** Starts a worker: the same program with the same arguments. */
export function forkWorker(settings: SeatSettings, { clock, answer, handovers }: WorkerPorts): WorkerProcess {
  const worker = cluster.fork({ [seatVariable]: JSON.stringify(settings) });
  handovers.watch(worker.process);
  const started = Promise.withResolvers<boolean>();
  const ended = Promise.withResolvers<WorkerEnd>();
  let hasStarted = false;
  let sentMessages = 0;
  let lastFigures: MetricsText | null = null;
  const send = (message: ToWorker): void => {
    // A worker that has just ended reports it by its exit.
    if (worker.isConnected()) worker.send(message, () => {});
  };
  const questions = createQuestions<WorkerQuestion>(send, clock, workerAnswerMs);
  let isOverdue = false;
  const cancelLimit = clock.schedule(startMs, () => {
    isOverdue = true;
    worker.process.kill('SIGKILL');
  });
  worker.on('message', (message: ToPrimary) => {
    sentMessages++;
    if (message.kind === 'answer') questions.answered(message.id, message.answer);
    else if (message.kind === 'last figures') lastFigures = message.figures;
    else if (message.kind === 'question')
      void answer(message.question).then((text) => send({ kind: 'answer', id: message.id, answer: text }));
    else if (message.kind === 'started') {
      cancelLimit();
      hasStarted = true;
      started.resolve(true);
    }
  });
  const onEnd = (end: WorkerEnd): void => {
    cancelLimit();
    started.resolve(false);
    ended.resolve(end);
  };
  // An error is that of a process that could not be made; without a listener it would end this one.
  worker.on('error', () => {
    if (worker.process.pid === undefined) onEnd({ code: null, signal: null, isOverdue });
  });
  worker.on('exit', (code: number | null, signal: string | null) => onEnd({ code, signal, isOverdue }));
  return {
    id: worker.id,
    pid: worker.process.pid,
    get hasStarted() {
      return hasStarted;
    },
    get sentMessages() {
      return sentMessages;
    },
    get lastFigures() {
      return lastFigures;
    },
    started: started.promise,
    ended: ended.promise,
    ask: (...asked) => questions.ask(...asked),
    leave: () => send({ kind: 'leave' }),
    end: () => send({ kind: 'end' }),
    retire: () => send({ kind: 'retire' }),
    kill: () => void worker.process.kill('SIGKILL'),
  };
}

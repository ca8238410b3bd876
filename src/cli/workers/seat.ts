import type { Clock } from '../../domain/ports/clock.ts';
import type { Workers } from '../../domain/ports/workers.ts';
import type { ComposedGateway } from '../../gateway.ts';
import { createQuestions, primaryAnswerMs } from './messages.ts';
import type { Answer, PrimaryQuestion, Reload, ToPrimary, ToWorker, WorkerQuestion } from './messages.ts';

/** The variable that makes a process a worker of ours: one of another cluster, as of pm2, has none. */
export const seatVariable = 'TEXTGATE_WORKER_SEAT';

/** What a worker is told at its start. */
export interface SeatSettings {
  /** Whether it prints the notices of the start, and makes the first key. */
  readonly isFirst: boolean;
  /** How many workers there are. */
  readonly count: number;
  /** What the workers present to each other. */
  readonly peerToken: string;
}

/** What a worker does when the primary process wants it. */
interface WorkerActions {
  /** Puts a config into force; returns why it could not. */
  reload(reload: Reload): Answer;
  reloadFailed(reason: string): void;
  /** Ends the process as after a signal. */
  end(): void;
}

/** A worker's side of the channel to the primary process. */
export interface Seat extends Workers, SeatSettings {
  /** The text of the config file that the other workers have; `null` when there is no file. */
  configText(): Promise<string | null>;
  /** Says that this worker takes requests. */
  started(): void;
  /** Answers the primary process from now on. Before that, being told to end ends the process at once. */
  attach(gateway: ComposedGateway, actions: WorkerActions): void;
  /** Tells the primary process what this worker has counted; resolves when it is sent, or can't be. */
  tellFigures(gateway: ComposedGateway): Promise<void>;
}

/** The seat of this process; `null` unless the primary process of a gateway has started it. */
export function takeSeat(environment: NodeJS.ProcessEnv, clock: Clock): Seat | null {
  const written = environment[seatVariable];
  if (written === undefined) return null;
  // Not imported, because a gateway without workers should not load it.
  const { worker } = process.getBuiltinModule('node:cluster');
  if (worker === undefined) return null;
  Reflect.deleteProperty(environment, seatVariable);
  // The primary process acts on these; sent to all processes of a group or terminal, they would end the workers.
  for (const signal of ['SIGHUP', 'SIGUSR2'] as const) process.on(signal, () => {});
  // When the primary process is gone, `node:cluster` would end this one at once, with all of its requests.
  worker.exitedAfterDisconnect = true;
  // What is sent before the end of the channel is noticed fails, also what `node:cluster` sends of itself: an uncaught error
  // would cut off all requests.
  worker.on('error', () => {});
  return createSeat(worker.id, JSON.parse(written) as SeatSettings, clock);
}

function send(message: ToPrimary): void {
  if (process.connected) process.send?.(message);
}

function createSeat(id: number, settings: SeatSettings, clock: Clock): Seat {
  const questions = createQuestions<PrimaryQuestion>(send, clock, primaryAnswerMs);
  let attached: { readonly gateway: ComposedGateway; readonly actions: WorkerActions } | null = null;
  const end = (): void => (attached === null ? process.exit(0) : attached.actions.end());
  const retire = async (): Promise<void> => {
    await attached?.gateway.retire();
    end();
  };
  let missedReload: Reload | null = null;
  const answer = async (question: WorkerQuestion): Promise<Answer> => {
    if (question.name === 'alive') return null;
    if (attached === null) {
      if (question.name === 'reload') missedReload = question;
      return question.name === 'why not ready' ? 'starting' : null;
    }
    const { gateway, actions } = attached;
    if (question.name === 'figures') return gateway.figures();
    if (question.name === 'status') return gateway.ownStatus();
    if (question.name === 'views') return gateway.ownViews();
    if (question.name === 'why not ready') return gateway.whyNotReady();
    if (question.name === 'reload') return actions.reload(question);
    actions.reloadFailed(question.reason);
    return null;
  };
  process.on('message', (message: ToWorker) => {
    if (message.kind === 'answer') questions.answered(message.id, message.answer);
    else if (message.kind === 'leave') attached?.gateway.leave();
    else if (message.kind === 'end') end();
    else if (message.kind === 'retire') void retire();
    else if (message.kind === 'question')
      void answer(message.question).then((text) => send({ kind: 'answer', id: message.id, answer: text }));
  });
  // No process of a gateway outlives the primary one for longer than its running requests take.
  process.once('disconnect', end);
  return {
    ...settings,
    own: id,
    async configText() {
      const text = await questions.ask({ name: 'config text' });
      if (text === undefined) throw new Error('the primary process did not hand over the config in time');
      return text;
    },
    exposeMetrics: async () => (await questions.ask({ name: 'metrics' })) ?? null,
    readStatuses: async () => (await questions.ask({ name: 'statuses' })) ?? null,
    readViews: async () => (await questions.ask({ name: 'all views' })) ?? null,
    isAnyReady: async () => (await questions.ask({ name: 'why none ready' })) === null,
    started: () => send({ kind: 'started' }),
    attach(gateway, actions) {
      attached = { gateway, actions };
      // It began with the config that was in force before.
      const reason = missedReload === null ? null : actions.reload(missedReload);
      if (reason !== null) actions.reloadFailed(reason);
    },
    async tellFigures(gateway) {
      const figures = await gateway.figures();
      if (!process.connected) return;
      const { promise: sent, resolve } = Promise.withResolvers<void>();
      process.send?.({ kind: 'last figures', figures } satisfies ToPrimary, undefined, {}, () => resolve());
      await sent;
    },
  };
}

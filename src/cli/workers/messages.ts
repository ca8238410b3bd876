import type { MetricsText } from '../../telemetry/metrics/metric-sums.ts';

/** What the primary process asks a worker; the answer is a text or nothing. */
export type WorkerQuestion =
  /** Has no data in its answer: that one comes, however late, shows that the event loop runs. */
  | { readonly name: 'alive' }
  /** Its metrics. */
  | { readonly name: 'figures' }
  /** What it alone knows of the status, as JSON. */
  | { readonly name: 'status' }
  /** What it alone knows of upstreams and shadow routes, as JSON. */
  | { readonly name: 'views' }
  /** Why it can't take requests; nothing when it can. */
  | { readonly name: 'why not ready' }
  /** Puts a config into force; the answer is why it could not. */
  | ({ readonly name: 'reload' } & Reload)
  /** Logs and counts that the config was not put into force, for all workers. */
  | { readonly name: 'reload failed'; readonly reason: string };

/** A config that all workers put into force. */
export interface Reload {
  /** The text of the config file, which may have changed again since it was read; `null` for that of the environment. */
  readonly text: string | null;
  /** Whether this worker counts it, as one of all does. */
  readonly isCounted: boolean;
}

/** What a worker asks the primary process. */
export type PrimaryQuestion =
  /** The text of the config file that is in force; nothing when there is no file. */
  | { readonly name: 'config text' }
  /** The exposition of the metrics of all workers. */
  | { readonly name: 'metrics' }
  /** What each worker alone knows of the status, as a list in JSON. */
  | { readonly name: 'statuses' }
  /** What each worker alone knows of upstreams and shadow routes, as a list in JSON. */
  | { readonly name: 'all views' }
  /** Why no worker can take requests; nothing when one can. */
  | { readonly name: 'why none ready' };

/** The text of an answer, or nothing. */
export type Answer = string | null;

/** What the two processes send each other beside what `node:cluster` sends. */
export type Message<Question> =
  | { readonly kind: 'question'; readonly id: number; readonly question: Question }
  | { readonly kind: 'answer'; readonly id: number; readonly answer: Answer }
  /** To a worker: not to be ready any more; to end as after a signal; or only once its open connections had time to end. */
  | { readonly kind: 'leave' | 'end' | 'retire' }
  /** From a worker: it takes requests. */
  | { readonly kind: 'started' }
  /** From a worker: what it had counted when it ended. */
  | { readonly kind: 'last figures'; readonly figures: MetricsText };

/** The messages that a worker gets, and those that it sends. */
export type ToWorker = Message<WorkerQuestion>;
export type ToPrimary = Message<PrimaryQuestion>;

import type { LimitReport } from '../../protocol/upstream/limit-headers.ts';
import type { Target } from '../upstreams/sent-request.ts';

/** Tokens of a request: of what is sent, and of what is answered. */
export interface RequestTokens {
  readonly input: number;
  readonly output: number;
}

/** Limits by the config, of an upstream or of a model there; `null` for a limit that is not set. */
export interface LimitSettings {
  /** Requests in progress there at a time. */
  readonly maxInFlight: number | null;
  /** Starts in any 60 seconds. */
  readonly requestsPerMinute: number | null;
  /** Input and output tokens in any 60 seconds. */
  readonly tokensPerMinute: number | null;
  /** Whether the limits that its answers report are kept, too. */
  readonly learnLimits: boolean;
  /** How many requests may wait for it; those that wait elsewhere, too, may be more. */
  readonly queue: number;
  /** How long a request may wait for it, in milliseconds; 0 refuses at once. */
  readonly queueWaitMs: number;
}

/** The limits of one upstream, which hold for all of its models together, and those that a model has beside them. */
export interface LimiterSettings extends LimitSettings {
  /** The limits of models, by their names there. */
  readonly models: ReadonlyMap<string, LimitSettings>;
}

/** A request that asks for a permit at one of some upstreams. */
export interface PermitRequest {
  readonly requestId: string;
  /** The key by which it is queued. */
  readonly keyId: string;
  /** The key's weight in the fair queue; 1 is usual. */
  readonly weight: number;
  /** Where it may be sent, the preferred one first; what has no limits is free at any time. */
  readonly targets: readonly Target[];
  /** The most tokens that are expected of it. */
  readonly tokens: RequestTokens;
  /** How long it has waited for permits before, in milliseconds: that counts towards `queueWaitMs`. */
  readonly waitedMs: number;
  /** The number of the config that it goes by, of which a later one has a larger one; without it, it is the latest. */
  readonly config?: number;
}

/** A request that gets a permit if one is free, and waits in no queue. */
type ImmediateRequest = Omit<PermitRequest, 'requestId' | 'waitedMs'>;

/** A request's permit at an upstream, for a model there. */
export interface Permit extends Target {
  /** Whether the model has limits of its own there. */
  readonly isOfModel: boolean;
  /**
   * Notes the head of its answer, at most once: the status, the pause that it asks for, and the limits that it reports. A
   * pause counts only with a status that refuses: some upstreams send `retry-after` with every answer.
   */
  answered(status: number, retryAfterMs: number | null, report: LimitReport | null): void;
  /** Releases the permit; `usage` is `null` where it is unknown. A second call changes nothing. */
  release(usage: RequestTokens | null): void;
  /** Releases the permit, instead of `release`, where nothing was sent: then it has used nothing of any limit. */
  releaseUnused(): void;
}

/** The queues that refused a request. */
interface RefusedBy {
  readonly upstreams: readonly string[];
  /** Those of its models that have limits of their own there. */
  readonly models: readonly { readonly upstream: string; readonly model: string }[];
  readonly waiting: number;
  readonly expectedMs: number;
}

/** What became of a request for a permit. Times are in milliseconds. */
export type AcquireResult =
  | {
      readonly kind: 'acquired';
      readonly permit: Permit;
      /** How long it waited now; without what it had waited before. */
      readonly waitedMs: number;
      /** The wait that was expected when it joined the queues; 0 if it did not wait. */
      readonly expectedMs: number;
    }
  /**
   * All queues are full, or one would let it wait, but for less long than it would take (`isTooLong`); `waiting` and
   * `expectedMs` are those of the shortest wait among them.
   */
  | (RefusedBy & { readonly kind: 'full'; readonly isTooLong: boolean })
  /** It waited as long as it may; `expectedMs` is what a request that joins now has to expect. */
  | (RefusedBy & { readonly kind: 'timed_out'; readonly waitedMs: number })
  /** The signal was raised. */
  | { readonly kind: 'interrupted' };

/** A request that waits for a permit. */
export interface PermitWait {
  /** The best of its positions in queues: 1 is the next one. */
  readonly position: number;
  /** The shortest wait that is expected from now on, in milliseconds. */
  readonly expectedMs: number;
  readonly upstreams: readonly string[];
}

/** A limit that an upstream reported, as it is believed to stand now. */
export interface LearnedLimitView {
  readonly name: string;
  readonly limit: number;
  /** What is left of it, less what the upstream may not have counted yet. */
  readonly left: number;
}

/** How some limits are used. */
export interface LimitsView {
  readonly inFlight: number;
  /** The most requests in progress: the smallest of all bounds; `null` without one. */
  readonly maxInFlight: number | null;
  /** What is left of the configured limits in this minute; `null` for a limit that is not set. */
  readonly startsLeft: number | null;
  readonly tokensLeft: number | null;
  readonly learned: readonly LearnedLimitView[];
  /** Requests in progress to which answers of 429 without a reason have led; `null` without one. */
  readonly learnedInFlight: number | null;
  /** How long nothing is sent, as the upstream asked for, in milliseconds. */
  readonly pausedMs: number;
  readonly waiting: number;
  /** What a request of a key without others has to expect, in milliseconds. */
  readonly expectedMs: number;
}

/** How the limits of a model at an upstream are used, by its name there. */
interface ModelLimitsView extends LimitsView {
  readonly model: string;
}

/** What an upstream's limiter shows: of all of its models together, and of each that has limits of its own. */
export interface LimiterView extends LimitsView {
  readonly upstream: string;
  readonly models: readonly ModelLimitsView[];
  /** The models that pause alone, with limits of their own or without; the model is `null` for what is passed on verbatim. */
  readonly pauses: readonly { readonly model: string | null; readonly pausedMs: number }[];
}

/** The limiters of upstreams with limits. An upstream without any limit has no limiter, and costs nothing. */
export interface UpstreamLimiters {
  /** Whether a target has limits, its upstream's or its model's: a request for targets without any needs no permit. */
  limits(target: Target): boolean;
  /**
   * Acquires a permit: at once, without a promise, where there is one; else it waits in the queues of all its upstreams, and
   * leaves them all with the first permit. Keys are served by their weights, requests of a key in the order of their arrival.
   */
  acquire(request: PermitRequest, signal: AbortSignal): AcquireResult | Promise<AcquireResult>;
  /** Acquires a permit that is free now, for a request that joins no queue; `null` if there is none. */
  tryAcquire(request: ImmediateRequest): Permit | null;
  /** `null` for a request that does not wait. */
  waiting(requestId: string): PermitWait | null;
  /** How long a target is not used, as its upstream asked for, in milliseconds; 0 for one without limits. */
  pausedMs(target: Target): number;
  /** All upstreams with limits. */
  views(): readonly LimiterView[];
}

/** Limiters whose limits can change. */
export interface ConfigurableLimiters extends UpstreamLimiters {
  /** Replaces all settings. Requests that wait get permits by the new limits at once; those in progress go on. */
  configure(settings: ReadonlyMap<string, LimiterSettings>): void;
  /**
   * Forgets what the answers of an upstream taught, because with the config of this number it is another one. Requests of
   * earlier configs, which still go to the old one, teach nothing from now on. What is configured stays.
   */
  forget(upstream: string, config: number): void;
}

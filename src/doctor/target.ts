import type { Clock } from '../domain/ports/clock.ts';
import type { Network } from '../domain/ports/network.ts';
import type { Upstreams } from '../domain/ports/upstreams.ts';
import type { ModelSource } from '../domain/routing.ts';
import type { DialectName } from '../protocol/upstream/dialects.ts';
import type { Check } from './report.ts';

/** An upstream to examine. */
export interface Target {
  /** Its name in the config. */
  readonly name: string;
  readonly url: URL;
  /** How the gateway calls it. */
  readonly source: ModelSource;
  readonly dialect: DialectName;
  /** Whether `apiKey` is set: further headers may hold a key, or none. */
  readonly hasApiKey: boolean;
  /** Whether a model may be asked: passthrough paths alone need none. */
  readonly hasModels: boolean;
  /**
   * Whether the Responses API is tested beside `dialect`: if the config names it, or for finding out whether the upstream
   * has it.
   */
  readonly responses: 'named' | 'looked_for' | 'left_out';
  /** The model to ask; `null` for the first one in the upstream's list. */
  readonly model: string | null;
  /** The names that the config's routes have for its models. */
  readonly routed: readonly string[];
  /** Patterns of the listed models that are offered. */
  readonly allow: readonly string[];
}

/** Whether a target is the built-in demo: it has neither a connection nor keys, and answers for any model. */
export function isDemo({ url }: Pick<Target, 'url'>): boolean {
  return url.protocol === 'demo:';
}

/** What an examination needs of the outside. */
export interface DoctorPorts {
  readonly upstreams: Upstreams;
  /** The same upstreams with a key that does not exist; `null` if a wrong key is not tried. */
  readonly upstreamsWithWrongKey: Upstreams | null;
  readonly network: Network;
  readonly clock: Clock;
  /** How long one call may take, in milliseconds. */
  readonly callMs: number;
  /** Ends the examination: the running call is broken off, and the examination rejects instead of making another one. */
  readonly signal: AbortSignal;
  /** Called with checks as they are done. The report may say less: one fault may be the reason of another. */
  readonly onChecks: (checks: readonly Check[]) => void;
}

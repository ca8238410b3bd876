import type { Clock } from '../domain/ports/clock.ts';
import type { Network } from '../domain/ports/network.ts';
import type { Upstreams } from '../domain/ports/upstreams.ts';
import type { ModelSource } from '../domain/routing.ts';
import type { DialectName } from '../protocol/upstream/dialects.ts';

/** An upstream to examine. */
export interface Target {
  /** Its name in the config. */
  readonly name: string;
  readonly url: URL;
  /** How the gateway calls it. */
  readonly source: ModelSource;
  readonly dialect: DialectName;
  /** Whether the Responses API is tested, too, if the upstream has it. */
  readonly triesResponses: boolean;
  /** The model to ask; `null` for the first one in the upstream's list. */
  readonly model: string | null;
  /** The names that the config's routes have for its models. */
  readonly routed: readonly string[];
  /** Patterns of the listed models that are offered. */
  readonly allow: readonly string[];
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
}

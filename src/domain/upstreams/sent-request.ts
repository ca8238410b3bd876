import type { Circuit } from './circuit.ts';
import type { Reach, HealthSign } from './failure.ts';
import type { KnownModel, KnownUpstream } from './known-upstream.ts';
import type { Clock } from '../ports/clock.ts';

/** Where a request may be sent: an upstream, and the model's name there; `null` for what is passed on verbatim. */
export interface Target {
  readonly upstream: string;
  readonly model: string | null;
}

/** A circuit that opened or closed. */
export interface CircuitChange extends Target {
  readonly isOpen: boolean;
  /** The key for which alone it is open; `null` for all of them. */
  readonly onlyKey: string | null;
  /** Why the latest request failed. */
  readonly cause: string | null;
}

/** Reports one attempt to its upstream's health. */
export interface HealthReport {
  /** Notes that the answer has begun, which closes an open circuit. Success or failure is only known at the end. */
  opened(): void;
  /**
   * Notes the result, once; `retryAfterMs` is the pause that was asked for, `cause` the operator's sentence about a failure, and
   * `reach` how far the failure reaches: without it, no further than the model.
   */
  ended(sign: HealthSign, retryAfterMs: number | null, cause?: string | null, reach?: Reach): void;
}

/** What a report needs. */
export interface ReportPorts {
  readonly clock: Clock;
  readonly onChange: (change: CircuitChange) => void;
}

/** The cause of a failure that has none of its own. */
const unnamed = 'the latest request failed';

/** One request that is sent: its failure counts for the model, or for the whole upstream. */
export class SentRequest implements HealthReport {
  readonly #upstream: KnownUpstream;
  readonly #target: Target;
  readonly #model: KnownModel | null;
  readonly #key: string | null;
  readonly #startedMs: number;
  readonly #ports: ReportPorts;

  constructor(upstream: KnownUpstream, target: Target, key: string | null, ports: ReportPorts) {
    this.#upstream = upstream;
    this.#target = target;
    this.#model = target.model === null ? null : upstream.model(target.model);
    this.#key = key;
    this.#ports = ports;
    this.#startedMs = ports.clock.monotonicMs();
    upstream.requests.began(this.#startedMs, key);
    this.#model?.circuit.began(this.#startedMs, key);
  }

  opened(): void {
    const { clock } = this.#ports;
    const nowMs = clock.monotonicMs();
    this.#upstream.note(null, this.#model, clock.now());
    this.#changeBoth((circuit) => circuit.opened(this.#startedMs, nowMs));
  }

  ended(
    sign: HealthSign,
    retryAfterMs: number | null,
    cause: string | null = null,
    reach: Reach = 'model',
  ): void {
    const isWhole = sign === 'failure' && (reach !== 'model' || this.#model === null);
    const { clock } = this.#ports;
    const nowMs = clock.monotonicMs();
    if (sign === 'success') this.#upstream.note(null, this.#model, clock.now());
    if (sign === 'failure' || sign === 'busy')
      this.#upstream.note(cause ?? unnamed, isWhole ? null : this.#model, clock.now());
    const key = reach === 'connection' ? null : this.#key;
    this.#changeBoth((circuit) => {
      // What concerns only one of the two says neither good nor bad of the other.
      const isConcerned =
        sign === 'success' || sign === 'unknown' || isWhole === (circuit !== this.#model?.circuit);
      circuit.ended(isConcerned ? sign : 'nothing', retryAfterMs, this.#startedMs, nowMs, key);
      if (circuit === this.#upstream.requests) this.#count(sign, isWhole, nowMs);
    });
  }

  /** Counts a model's failure for its upstream, as far as it does. */
  #count(sign: HealthSign, isWhole: boolean, nowMs: number): void {
    const { requests, modelFailures } = this.#upstream;
    const { model } = this.#target;
    if (sign === 'success') modelFailures.clear();
    if (sign !== 'failure' || isWhole || model === null) return;
    if (modelFailures.add(model, this.#key, nowMs))
      requests.open(modelFailures.onlyKey(), this.#startedMs, nowMs);
  }

  #changeBoth(work: (circuit: Circuit) => void): void {
    const { upstream, model } = this.#target;
    change(this.#upstream.requests, work, upstream, null, this.#upstream, this.#ports);
    if (this.#model !== null) change(this.#model.circuit, work, upstream, model, this.#model, this.#ports);
  }
}

/** One probe that is sent. */
export class SentProbe implements Pick<HealthReport, 'ended'> {
  readonly #upstream: KnownUpstream;
  readonly #name: string;
  readonly #circuit: Circuit;
  readonly #startedMs: number;
  readonly #ports: ReportPorts;

  constructor(upstream: KnownUpstream, name: string, ports: ReportPorts) {
    this.#upstream = upstream;
    this.#name = name;
    this.#circuit = upstream.probes;
    this.#ports = ports;
    this.#startedMs = ports.clock.monotonicMs();
    this.#circuit.began(this.#startedMs, null);
  }

  ended(sign: HealthSign, retryAfterMs: number | null, cause: string | null = null): void {
    const { clock } = this.#ports;
    if (sign === 'success') this.#upstream.note(null, null, clock.now());
    if (sign === 'failure') this.#upstream.note(cause ?? unnamed, null, clock.now());
    this.#change((circuit) => circuit.ended(sign, retryAfterMs, this.#startedMs, clock.monotonicMs(), null));
  }

  #change(work: (circuit: Circuit) => void): void {
    change(this.#circuit, work, this.#name, null, this.#upstream, this.#ports);
  }
}

/** Changes a circuit, and tells if that opened or closed it, or opened it for other keys. */
function change(
  circuit: Circuit,
  work: (circuit: Circuit) => void,
  upstream: string,
  model: string | null,
  known: { readonly cause: string | null },
  { onChange }: ReportPorts,
): void {
  const { isOpen: wasOpen, onlyKey: before } = circuit;
  work(circuit);
  const { isOpen, onlyKey } = circuit;
  if (isOpen === wasOpen && (!isOpen || onlyKey === before)) return;
  onChange({ upstream, model, isOpen, onlyKey, cause: known.cause });
}

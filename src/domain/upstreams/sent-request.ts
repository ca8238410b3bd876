import type { Circuit } from './circuit.ts';
import type { Reach, HealthSign } from './failure.ts';
import type { KnownUpstream } from './known-upstream.ts';
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

/** Notes that a request is sent: its failure counts for the model, or for the whole upstream. */
export function noteRequest(
  upstream: KnownUpstream,
  target: Target,
  key: string | null,
  { clock, onChange }: ReportPorts,
): HealthReport {
  const model = target.model === null ? null : upstream.model(target.model);
  const startedMs = clock.monotonicMs();
  upstream.requests.began(startedMs, key);
  model?.circuit.began(startedMs, key);

  const changeBoth = (work: (circuit: Circuit) => void): void => {
    change(upstream.requests, work, { ...target, model: null }, upstream, onChange);
    if (model !== null) change(model.circuit, work, target, model, onChange);
  };
  /** Counts a model's failure for its upstream, as far as it does. */
  const count = (sign: HealthSign, isWhole: boolean, nowMs: number): void => {
    const { requests, modelFailures } = upstream;
    if (sign === 'success') modelFailures.clear();
    if (sign !== 'failure' || isWhole || target.model === null) return;
    if (modelFailures.add(target.model, key, nowMs)) requests.open(modelFailures.onlyKey(), startedMs, nowMs);
  };
  return {
    opened() {
      const nowMs = clock.monotonicMs();
      upstream.note(null, model, clock.now());
      changeBoth((circuit) => circuit.opened(startedMs, nowMs));
    },
    ended(sign, retryAfterMs, cause = null, reach = 'model') {
      const isWhole = sign === 'failure' && (reach !== 'model' || model === null);
      const nowMs = clock.monotonicMs();
      if (sign === 'success') upstream.note(null, model, clock.now());
      if (sign === 'failure' || sign === 'busy')
        upstream.note(cause ?? unnamed, isWhole ? null : model, clock.now());
      const countedKey = reach === 'connection' ? null : key;
      changeBoth((circuit) => {
        // What concerns only one of the two says neither good nor bad of the other.
        const isConcerned =
          sign === 'success' || sign === 'unknown' || isWhole === (circuit !== model?.circuit);
        circuit.ended(isConcerned ? sign : 'nothing', retryAfterMs, startedMs, nowMs, countedKey);
        if (circuit === upstream.requests) count(sign, isWhole, nowMs);
      });
    },
  };
}

/** Notes that a probe is sent. */
export function noteProbe(
  known: KnownUpstream,
  upstream: string,
  { clock, onChange }: ReportPorts,
): Pick<HealthReport, 'ended'> {
  const circuit = known.probes;
  const startedMs = clock.monotonicMs();
  circuit.began(startedMs, null);
  return {
    ended(sign, retryAfterMs, cause = null) {
      if (sign === 'success') known.note(null, null, clock.now());
      if (sign === 'failure') known.note(cause ?? unnamed, null, clock.now());
      const end = (): void => circuit.ended(sign, retryAfterMs, startedMs, clock.monotonicMs(), null);
      change(circuit, end, { upstream, model: null }, known, onChange);
    },
  };
}

/** Changes a circuit, and tells if that opened or closed it, or opened it for other keys. */
function change(
  circuit: Circuit,
  work: (circuit: Circuit) => void,
  { upstream, model }: Target,
  known: { readonly cause: string | null },
  onChange: ReportPorts['onChange'],
): void {
  const { isOpen: wasOpen, onlyKey: before } = circuit;
  work(circuit);
  const { isOpen, onlyKey } = circuit;
  if (isOpen === wasOpen && (!isOpen || onlyKey === before)) return;
  onChange({ upstream, model, isOpen, onlyKey, cause: known.cause });
}

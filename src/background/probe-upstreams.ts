import type { CallTarget } from '../domain/diagnosis/call-target.ts';
import { reportChanges } from '../domain/fault-reports.ts';
import { diagnose, sentencesOf } from '../domain/diagnosis/diagnose.ts';
import { getCall } from '../domain/ports/upstreams.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { Upstreams } from '../domain/ports/upstreams.ts';
import type { HealthSign } from '../domain/upstreams/failure.ts';
import type { UpstreamHealth } from '../domain/upstreams/upstream-health.ts';
import { repeat } from './repeat.ts';

/** How long an upstream may take to answer a probe, in milliseconds. */
const probeLimitMs = 5_000;

/** An upstream that is probed at an interval, with or without requests. */
export interface Probe {
  readonly upstream: string;
  readonly target: CallTarget;
  /** What it is asked for, below its base URL. */
  readonly path: string;
  readonly intervalMs: number;
}

/** What the probes need. */
export interface ProbePorts {
  readonly upstreams: Upstreams;
  readonly health: UpstreamHealth;
  readonly clock: Clock;
  /** Called with the cause of a failed probe, once until it changes, and with `null` when probes succeed again. */
  readonly onChange: (upstream: string, cause: string | null) => void;
}

/** Finds a dead upstream before a client does. Returns a function that stops all probes. */
export function probeUpstreams(probes: readonly Probe[], ports: ProbePorts): () => void {
  const stopped = new AbortController();
  for (const probe of probes) {
    const report = reportChanges((cause) => ports.onChange(probe.upstream, cause));
    const times = { firstMs: probe.intervalMs, delayMs: probe.intervalMs };
    repeat(() => runProbe(probe, ports, report, stopped.signal), times, ports.clock, stopped.signal);
  }
  return () => stopped.abort();
}

async function runProbe(
  { upstream, path, target }: Probe,
  { upstreams, health, clock }: ProbePorts,
  report: (cause: string | null) => void,
  stopped: AbortSignal,
): Promise<void> {
  const limit = new AbortController();
  const cancel = clock.schedule(probeLimitMs, () => limit.abort());
  const attempt = health.probed(upstream);
  const call = getCall(upstream, path, probeLimitMs);
  const answer = await upstreams.call(call, AbortSignal.any([limit.signal, stopped]));
  cancel();
  if (answer.kind === 'answer') answer.release();
  if (stopped.aborted) return attempt.ended('unknown', null);
  const sign = signOf(answer);
  const cause =
    sign === 'failure'
      ? sentencesOf(diagnose({ method: call.method, path, target, limitMs: probeLimitMs }, answer))
      : null;
  attempt.ended(sign, null, cause);
  if (sign !== 'nothing') report(cause);
}

/** Any answer but an error of the upstream's own shows that it is up; a missing answer is a failure. */
function signOf(answer: Awaited<ReturnType<Upstreams['call']>>): HealthSign {
  if (answer.kind === 'fault') return answer.fault === 'stale' ? 'nothing' : 'failure';
  return answer.status === 401 || answer.status === 403 || answer.status >= 500 ? 'failure' : 'success';
}

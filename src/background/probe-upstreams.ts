import { getCall } from '../domain/get-call.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { Upstreams } from '../domain/ports/upstreams.ts';
import type { HealthSign } from '../domain/failure.ts';
import type { UpstreamHealth } from '../domain/upstream-health.ts';

/** How long an upstream may take to answer a probe, in milliseconds. */
const probeLimitMs = 5_000;

/** An upstream that is probed at an interval, with or without requests. */
export interface Probe {
  readonly upstream: string;
  /** What it is asked for, below its base URL. */
  readonly path: string;
  readonly intervalMs: number;
}

/** Finds a dead upstream before a client does. Returns a function that stops all probes. */
export function probeUpstreams(
  probes: readonly Probe[],
  upstreams: Upstreams,
  health: UpstreamHealth,
  clock: Clock,
): () => void {
  const stopped = new AbortController();
  const stops = probes.map((probe) => {
    const again = (): void =>
      void runProbe(probe, upstreams, health, clock, stopped.signal).then(() => {
        if (!stopped.signal.aborted) cancel = clock.schedule(probe.intervalMs, again);
      });
    let cancel = clock.schedule(probe.intervalMs, again);
    return () => cancel();
  });
  return () => {
    stopped.abort();
    for (const stop of stops) stop();
  };
}

async function runProbe(
  { upstream, path }: Probe,
  upstreams: Upstreams,
  health: UpstreamHealth,
  clock: Clock,
  stopped: AbortSignal,
): Promise<void> {
  const limit = new AbortController();
  const cancel = clock.schedule(probeLimitMs, () => limit.abort());
  const attempt = health.probed(upstream);
  const call = getCall(upstream, path, probeLimitMs);
  const answer = await upstreams.call(call, AbortSignal.any([limit.signal, stopped]));
  cancel();
  if (answer.kind === 'answer') answer.release();
  attempt.ended(stopped.aborted ? 'unknown' : signOf(answer), null);
}

/** Any answer but an error of the upstream's own shows that it is up; a missing answer is a failure. */
function signOf(answer: Awaited<ReturnType<Upstreams['call']>>): HealthSign {
  if (answer.kind === 'fault') return answer.fault === 'stale' ? 'nothing' : 'failure';
  return answer.status === 401 || answer.status === 403 || answer.status >= 500 ? 'failure' : 'success';
}

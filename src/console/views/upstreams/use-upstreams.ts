import { useEffect, useRef } from 'preact/hooks';
import type { PresentedUpstream } from '../../../http/present/upstream.ts';
import { adminPath } from '../../api/admin-api.ts';
import { useAnswer, usePolling } from '../../api/use-loaded.ts';
import { lostNotice, useStatus } from '../../api/use-status.ts';
import type { Status } from '../../api/use-status.ts';

export type Upstream = PresentedUpstream;

/**
 * How often the list is read again, in milliseconds: while an upstream fails or requests wait for one, and else. The status
 * does not show that a circuit opens at an upstream that failed before.
 */
const troubledMs = 1_000;
const calmMs = 10_000;

/** What is known of the upstreams. */
interface KnownUpstreams {
  /** In the order of the config; `null` before the first answer. */
  readonly upstreams: readonly Upstream[] | null;
  /** The gateway's time, as it was last told. */
  readonly at: string | null;
  readonly fault: string | null;
}

/** Reads the list of upstreams, and reads it again when the status shows another state. */
export function useUpstreams(): KnownUpstreams {
  const { status, isLost } = useStatus(1);
  const asked = useAnswer<{ readonly data: readonly Upstream[] }>(adminPath('upstreams'));
  const { answer, error, isWaiting, reload } = asked;
  const states = status === null ? null : statesOf(status);
  const isTroubled = answer?.data.some(
    ({ state, circuit, limiter }) =>
      isFailing(state) || circuit.state !== 'closed' || (limiter !== null && limiter.waiting > 0),
  );
  const isOutdated = useRef(false);
  useEffect(() => {
    // The answer that is waited for may be of the time before the change, but to break it off each time would end in none.
    if (isWaiting) isOutdated.current = true;
    else if (states !== null) reload();
  }, [states]);
  useEffect(() => {
    if (isWaiting || !isOutdated.current) return;
    isOutdated.current = false;
    reload();
  }, [isWaiting]);
  usePolling(asked, isTroubled === true ? troubledMs : calmMs);
  const lost = isLost ? lostNotice : null;
  return {
    upstreams: answer === null ? null : withRunning(answer.data, status),
    at: status?.at ?? null,
    fault: lost ?? error,
  };
}

/** The states in a form that can be compared. */
function statesOf({ upstreams }: Status): string {
  return JSON.stringify(Object.entries(upstreams).map(([name, { state, cause }]) => [name, state, cause]));
}

function isFailing(state: string): boolean {
  return state !== 'ok' && state !== 'unknown';
}

/** How much runs is taken from the status, which comes every second. */
function withRunning(upstreams: readonly Upstream[], status: Status | null): readonly Upstream[] {
  return upstreams.map((upstream) => ({
    ...upstream,
    running: status?.upstreams[upstream.name]?.running ?? upstream.running,
  }));
}
